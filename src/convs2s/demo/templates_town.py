"""Sentence templates about the market, travel, the weather, museums and the post."""

from convs2s.demo.notation import Template

MARKET = [
    Template(
        "{person.the} {get.past person} {things.a} at the market for {price}.",
        "{person.le} {get.past person} {things.un} au marché pour {price}.",
    ),
    Template(
        "How much do {produce.the} and {fruit.the} cost this week?",
        "Combien coûtent {produce.le} et {fruit.le} cette semaine ?",
    ),
    Template(
        "I would like {amount} of {produce} and {drink.a}, please.",
        "Je voudrais {amount} de {produce} et {drink.un}, s'il vous plaît.",
    ),
    Template(
        "The {fruit} from {town} are more expensive than the {fruit2} from {town2}.",
        "{fruit.le} de {town} sont plus {fruit?cher|chère|chers|chères} que {fruit2.le} "
        "de {town2}.",
    ),
    Template(
        "At the market in {town}, {produce.the} cost {price} a kilo.",
        "Au marché de {town}, {produce.le} coûtent {price} le kilo.",
    ),
    Template(
        "{named} paid {cost} for {item.this} and {object.a}.",
        "{named} a payé {cost} pour {item.ce} et {object.un}.",
    ),
    Template(
        "The price of {item.this} rose from {price} to {cost} in {year}.",
        "Le prix de {item.ce} est passé de {price} à {cost} en {year}.",
    ),
    Template(
        "The small shop near {place.the} sells {objects}, {fruit} and {ingredient}.",
        "Le petit magasin près de {place.le} vend {objects.un}, {fruit.un} et {ingredient.un}.",
    ),
    Template(
        "{thing.the} {thing?was|were} sold to {named} for {cost} {past}.",
        "{thing.le} {thing?a|ont} été vendu{thing?|e|s|es} à {named} pour {cost} {past}.",
    ),
]

TRAVEL = [
    Template(
        "The train to {town} leaves from platform {small} at {time}.",
        "Le train pour {town} part du quai {small} à {time}.",
    ),
    Template(
        "{person.the} {move.past person} {town} with {relative.my} on {date}.",
        "{person.le} {move.past person} à {town} avec {relative.mon} le {date}.",
    ),
    Template(
        "We will go to {town} with {relative.my} and {person.the} {future}.",
        "Nous irons à {town} avec {relative.mon} et {person.le} {future}.",
    ),
    Template(
        "A ticket from {town} to {town2} costs {price} on {weekday}s.",
        "Un billet de {town} à {town2} coûte {price} le {weekday}.",
    ),
    Template(
        "The road between {town} and {place.the} is {decimal} kilometers long.",
        "La route entre {town} et {place.le} est longue de {decimal} kilomètres.",
    ),
    Template(
        "{person.the} spent {count} days {country} with {relative.my} in {month}.",
        "{person.le} {person?a|ont} passé {count} jours {country} avec {relative.mon} en {month}.",
    ),
    Template(
        "Because of {nuisance.the}, the flight to {town} will arrive {number} minutes late.",
        "À cause de {nuisance.le}, le vol pour {town} arrivera avec {number} minutes de retard.",
    ),
    Template(
        "Excuse me, how do I get from {place.the} to {place2.the}?",
        "Excusez-moi, comment aller de {place.le} à {place2.le} ?",
    ),
    Template(
        "Turn left after {place.the} and continue to {building.the}.",
        "Tournez à gauche après {place.le} et continuez jusqu'à {building.le}.",
    ),
    Template(
        "The village of {town} has {thousands} inhabitants and {building.a}.",
        "Le village de {town} compte {thousands} habitants et {building.un}.",
    ),
    Template(
        "{person.the} {person?takes|take} the {ordinal} street on the right after {place.the}.",
        "{person.le} {person?prend|prennent} la {ordinal} rue à droite après {place.le}.",
    ),
    Template(
        "{friend} will {move.base} {town} on {day} to {see.base} {building.the}.",
        "{friend} {move.future} à {town} le {day} pour {see.infinitive} {building.le}.",
    ),
]

WEATHER = [
    Template(
        "{weather} in {town}, so {person.the} {person?is|are} staying at home.",
        "{weather} à {town}, alors {person.le} {person?reste|restent} à la maison.",
    ),
    Template(
        "It will be {small} degrees in {town} {future}, but only {small2} in {town2}.",
        "Il fera {small} degrés à {town} {future}, mais seulement {small2} à {town2}.",
    ),
    Template(
        "When {weather}, {person.the} {do.present person} in {room.the} and {friend} "
        "{do2.present friend} in {room2.the}.",
        "Quand {weather}, {person.le} {do.present person} dans {room.le} et {friend} "
        "{do2.present friend} dans {room2.le}.",
    ),
    Template(
        "In {month}, it rained for {count} days without stopping in {town}.",
        "En {month}, il a plu pendant {count} jours sans arrêt à {town}.",
    ),
    Template(
        "If the weather is nice {future}, {person.the} will go to {place.the}.",
        "S'il fait beau {future}, {person.le} {person?ira|iront} à {place.le}.",
    ),
    Template(
        "Because of {nuisance.the}, nobody visited {building.the} near {town} {past}.",
        "À cause de {nuisance.le}, personne n'a visité {building.le} près de {town} {past}.",
    ),
]

MUSEUM = [
    Template(
        "The museum of {town} opened its doors on {date}.",
        "Le musée de {town} a ouvert ses portes le {date}.",
    ),
    Template(
        "This painting by {named} shows {animal.a} and {item.a}.",
        "Ce tableau de {named} montre {animal.un} et {item.un}.",
    ),
    Template(
        "Admission to {sight.the} costs {price} for adults and {price2} for children.",
        "L'entrée de {sight.le} coûte {price} pour les adultes et {price2} pour les enfants.",
    ),
    Template(
        "More than {thousands} visitors came to {sight.the} in {month} {year}.",
        "Plus de {thousands} visiteurs sont venus à {sight.le} en {month} {year}.",
    ),
    Template(
        "{building.the} in {town} was built in {year} by {named}.",
        "{building.le} de {town} a été construit{building?|e|s|es} en {year} par {named}.",
    ),
    Template(
        "{count} years ago, there was {building.a} near {place.the}.",
        "Il y a {count} ans, il y avait {building.un} près de {place.le}.",
    ),
    Template(
        "It is forbidden to {do.base} in {place.the} or in front of {building.the}.",
        "Il est interdit de {do.infinitive} dans {place.le} ou devant {building.le}.",
    ),
]

POST = [
    Template(
        "{person.the} {person?writes|write} a long letter to {named} {habit}.",
        "{person.le} {person?écrit|écrivent} une longue lettre à {named} {habit}.",
    ),
    Template(
        "The letters that {friend} sent from {town} in {month} never arrived.",
        "Les lettres que {friend} a envoyées de {town} en {month} ne sont jamais arrivées.",
    ),
    Template(
        "Dear {friend}, thank you for {item.the} and {dish.the}.",
        "Ch{friend?er|ère|ers|ères} {friend}, merci pour {item.le} et {dish.le}.",
    ),
    Template(
        "{named} lives at {number} {town} Street, near {place.the}.",
        "{named} habite au {number}, rue {town}, près de {place.le}.",
    ),
    Template(
        "The package for {named} weighs {decimal} kilos and contains {thing.a}.",
        "Le colis pour {named} pèse {decimal} kilos et contient {thing.un}.",
    ),
    Template(
        "{relative.my} sent me a postcard from {town} on {day}.",
        "{relative.mon} m'a envoyé une carte postale de {town} le {day}.",
    ),
]

TEMPLATES = [*MARKET, *TRAVEL, *WEATHER, *MUSEUM, *POST]
