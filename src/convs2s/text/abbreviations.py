"""Abbreviations after which a sentence goes on, in addition to those of Moses' tokenizer.

Moses' lists serve to tokenize and must stay as they are, but they lack much that a text has before
a name or a number, such as "approx." in English and "str." in Romanian.
"""

import re
from functools import cache

BEFORE_NUMBER = "#"
"""Marks an abbreviation that counts only before a number. It often ends a sentence, or is a word as
well: "Sun." is an abbreviation in "Sun. 5 May", but not after "They saw the"."""

_ABBREVIATIONS = {
    "bg": """акад ал арх бл бул вж вх гл гр доц ет жк изд инж млн млрд напр общ обл
        пл проф св ср стр табл тел ул фиг хил чл""",
    "ca": """aprox art# arts av avda cap# cf dr dra ed fig# figs núm pàg pàgs prof sr
        sra srs tel vol# gen# febr# abr# jul# set# oct# nov# des#""",
    "cs": """cca č gen kap max# min# mld např obr odst plk pozn písm prof resp str sv
        tab tel tis tř tzv ul zvl""",
    "da": """adr afd bl ca cand dr ekskl evt fig forf frk hr inkl jf jfr kap kgl kl
        max# mia min# mio nr prof red sml tel tlf udg vedr vol jan# feb# mar# apr#
        jun# jul# aug# sep# sept# okt# nov# dec#""",
    "de": """bspw Fa Abb Abs Abschn Abt allg Anm Aufl Bd Bde bes bez Bhf Bl Bsp Dipl dt
        ehem eigtl einschl engl entspr ev exkl Fam Fig Fr franz frz gegr geb gest gez
        ggü griech Hbf Hl Hr Hrn hrsg Hrsg inkl insb insbes ital jap kath Kap lat max#
        Mag mind min# Mill nördl Obj orig österr östl Pfr Pkt rd Reg röm russ schweiz
        span spez südl Tab tägl techn Tel türk ungar urspr verh vorm westl zit Ziff zzgl
        Jan# Febr# Feb# Apr# Aug# Sept# Okt# Nov# Dez# Mo# Di# Mi# Do# Sa# So# Str# Abg
        Bf Bgm Dipl.-Ing Doz Dr.-Ing Dres erw Fn Frl Gde Gebr gem Gem Geschw habil hg Hg
        hist Hptm Hs Hss jährl Jb Jg Jgg Jh Jhd Jhdt Jhs jur kaufm Kfm kgl Kr Lfg Lkr
        Mss mtl Nachdr nat Nrn oec öffentl phil pol Präs Rdnr rer Rn röm.-kath Sekr Stk
        stellv Taf teilw theol Tsd Übers übers überarb Uffz vermutl versch Vors wiss
        wöchentl Wwe Zs Zschr Ztschr zus""",
    "el": "αρ βλ Δρ εκ κ κεφ λεωφ οδ περ σελ στρ τηλ χιλ",
    "en": """Amb approx appr assoc Atty cf dept div eds eq eqs esp est excl fig# figs#
        Ft incl max# mfr mgr min# misc Mt Mx Pres proc prev ref# refs# resp Sept supp
        Ste tab# tel temp# univ viz vol vols Mon Tue Tues Wed Thu Thur Thurs Fri Sat#
        Sun# art# ch# chap# ed# ext# no# p# par# para# pt# sec# secs# ver# Acad Appl
        app# Apt Benj Biol Br Bull cca Cdr Chas Chem Cllr cols# cor# defn# Dir Edw Eng
        Env eqn# eqns# fol# Geo Govt hist illus Inst Int Intl Jas Jos lem# Lett mss Natl
        Phys Pkwy Profs prop# publ Robt rpt Rte Saml Sci Sq Sts suppl Symp thm# Thos
        Trans Wm""",
    "es": """Fr admón aprox Arq art arts avda Avda cap cf Cnel Col Ctra Dpto depto Edo
        ed fig figs Gob gral Hno Hnos Ing Lcda Lcdo máx mín Mons Mtro núms págs Pdta
        Pdte Prof Profa ref Sgto tel Tte vol vols ene# feb# mar# abr# may# jun# jul#
        ago# sep# sept# oct# nov# dic# lun# mié# jue# vie# sáb# dom# gr# Alm Asoc ca
        caps# cfr cit Cía Cmdte coord d.C Dña Dres eds Excma FF fol Fund ib ibid Ilma
        Ilmo Izqda JJ Jr loc Ltda op Pbro Pl Plza Rdo RR Rvdo s# sigs Sras ss trad""",
    "et": "dr hr ingl lk nr nt pr prl prof tel tlk trl",
    "fi": """dipl em esim fil huom klo ks maist milj mrd nk nro ns os prof puh synt
        toim tri vrt""",
    "fr": """Dr J.-B J.-F J.-J J.-L J.-M J.-P Mlle Mme no# Pr St adj approx apr arr art
        av bd boul bull cf chap ch coll dép dépt dir éd édit env ex fasc fig figs ibid
        id ing inv max# Me Mgr min# Mr Mrs nos obs op par pl préf prof prov rem rub sect
        sing Ste suiv suppl tél trad vol# zool janv# févr# avr# juill# août# sept# oct#
        nov# déc# lun# mar# mer# jeu# ven# sam# dim# admin alin angl append Assoc bibl
        blvd c-à-d càd Cdt cit Cie Cies Cne Col comp corr dict Dre Drs écon encycl Ets
        ff fg fol gén Gén gr hébr hist hôp ill imp inst introd ital J-C J.-C Jr lat lic
        liv# loc Lt Ltée méd Mlles Mmes mss Mtre mun nat phil phys préc Prés princ Prs
        psych publ rapp rég rééd réf réfs réimpr rte sc scient Sén sér Sgt spéc Stes Sté
        Sts tabl# tel théol tom# trim univ Vve""",
    "hr": """br čl dipl dr god# gđa gđica gosp ing kol kn# mlrd mr npr odn pr prof sc
        st str sv tab tel tj tzv ul usp""",
    "hu": """ált bek bp dr évf fszt id ifj ill ker kb kiad krt ld max# min# ml özv pl
        prof rd szerk szül tc tkp ún uo vö""",
    "is": "bls dr fr hr kl nr próf sbr tbl",
    "it": """n# All# amm Arch arch art artt avv ca cap capp cav cfr cit comm corr dir
        dott dr ed egr es fig figg gen geom ing lett max# min# mons nr num on pag pagg
        par prof prot rag rev sen sez sig sigg soc spett tab tel ver vol voll feb# mar#
        apr# mag# giu# lug# ago# set# sett# ott# nov# dic# lun# mer# gio# ven# sab# dom#
        a.C d.C Dott.ssa F.lli Prof.ssa Ten""",
    "nb": """adr bl ca dr ekskl evt fig frk hr inkl jf jfr kap kgl kl maks# mill min#
        mrd nr pkt prof red tlf utg vedr jan# feb# mar# apr# jun# jul# aug# sep#
        sept# okt# nov# des#""",
    "nl": """afb art bijl blz ca cf dhr dr ds excl fam fig geb gem gest hfst incl ing
        jhr jkvr jl jr max# mevr min# mr mw nl nos nrs Nrs ong overl pag par plm prof
        red resp st tab tel vgl vnl vol# wrsch zgn zog jan# feb# mrt# apr# jun# jul#
        aug# sep# sept# okt# nov# dec#""",
    "pl": """t# al art bł cyt dol dr gen godz hab inż kard kl kol księg ks łac max#
        mgr min# mjr mld mln nast niem np nr ob ok# os pkt pl płk poł por pow poz
        proc prof przyp pt red rozdz rys św tab tel tj tys tyt tzn tzw ul ur ust wg
        właśc wyd zał zm zob""",
    "pt": """nº Al apart aprox Arq art arts av Av bibl bras cap caps cf Cia cód cx depto
        Dep ed eds Esc ex Exa Exma fig figs gov Gov Ilma Ilmo incl Jd Lg Lic máx mín
        mons nac núm obs pág págs Pça prof Profa ref rod séc sécs tel Trav vol vols jan#
        fev# mar# abr# mai# jun# jul# ago# set# out# nov# dez# seg# ter# qua# qui# sex#
        sáb# dom# a.C Ap Apt Apto Assoc Bl Cel cfr Cj Cmdt Cmte Conj Coord d.C Desa Dir
        Distr Dpto Dto Edif Emb Engª Engº esp Estr Fac fasc fax# fl fls fol Fr Freg Fund
        gr hab ib ibid il inc ingl Inst Ir Jr lat loc Lt Ltd Ltda méd# Min nr Org Pe pp
        Pr Pref Pres Prof.ª Profª Profs Qd Secr Srta Téc Telef Ten trad Tv Univ V.Exa
        V.Sa vid""",
    "ro": """acad adj alin ap aprox arh art av bd b-dul bl bul cap# cca col com conf cpt
        d-l d-lui d-na d-nei d-nul d-ra dlui dna dnei dnul dra drd dr ec ed ex fig gen#
        gl ing int jud jr lect lit lt max# min# mr mun nr obs op pag pct prof sc sf șos
        str tel univ vol ian# feb# mart# apr# iun# iul# aug# sept# oct# nov# dec# loc#
        sec# amb arhim asist bibl cav chim Cie colab cons coord d.Cr d.Hr dir dum# e.n
        edit engl et# fac fasc fax# fiz geogr germ gr gral guv ierom inst intr ist jur
        lat lt-col lun# magh mie# mil mld mss î.Cr î.e.n î.Hr noiem# p-ța p-ţa plt plut
        pr prot red resp sect serg Sft slt Soc sp subst sâm# şos trad urm""",
    "ru": """авг# акад англ гл гос д доц зав изд им# ин исп итал кв кн корп лат млн
        млрд напр нем наб обл оф пер пл пос пп прим просп проф пр рис ред рус см соч
        ср ст стр табл тел тов тт тыс ул укр фр франц янв# февр# апр# сент# окт#
        нояб# дек#""",
    "sk": """cca č gen kap max# min# mld napr obr ods plk pozn písm prof resp str sv
        tab tel tis tzv ul""",
    "sl": """avg# čl dipl dr gdč gl inž mag max# min# mio npr oz pr prof sl sv štev
        tel tj ul univ vključ""",
    "sv": """adj adr bd civ dir doc dr ev ex exkl fig forts förf inkl ing jfr jvg kap
        kl kungl max# mdr milj min# mom nr obs omkr op prof red resp sid sign st stud
        tab tel tfn tidn uppl ung utg vol övers""",
    "tr": """Alb Apt Av Bkz bkz Cad Doç Dr Hz Mah Müh Org Örn örn Öğr Prof Sn Sok Şb
        Tel Tğm Uzm Yrd Yzb""",
    "uk": """акад англ бул буд вул гл див доц ім кв корп лат млн млрд напр нім обл пл
        пп прим пров просп проф ред рис рос стор табл тел тис тт""",
}
"""Language -> its abbreviations without their full stops. If one begins with a small letter, it
may begin with a capital in a text."""

_ENDINGS = {"de": "str", "nl": "str"}
"""Language -> how abbreviated names of its streets end, such as "Goethestr"."""

_NUMBER = re.compile(r"\d|([IVXLC]{2,}|[VX])\b")
"""The beginning of a number. An "I" alone is a word in English."""

_SAME_LIST = {"nn": "nb", "no": "nb"}


@cache
def _further(language: str) -> frozenset[str]:
    words = _ABBREVIATIONS.get(_SAME_LIST.get(language, language), "").split()
    return frozenset(words)


def is_further_abbreviation(language: str, prefix: str, following: str) -> bool:
    """Return whether a word before a full stop is an abbreviation of this module.

    ``prefix`` is the word without the full stop, and ``following`` the text after it.
    """
    known = _further(language)
    forms = {prefix, prefix[:1].lower() + prefix[1:]}
    if not known.isdisjoint(forms):
        return True
    if prefix.endswith(_ENDINGS.get(language, ())):
        return True
    if not _NUMBER.match(following):
        return False
    return not known.isdisjoint(form + BEFORE_NUMBER for form in forms)
