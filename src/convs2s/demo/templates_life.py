"""Sentence templates about work, school, sport, music, time and people."""

from convs2s.demo.notation import Template

WORK = [
    Template(
        "{adult.the} {adult?works|work} at {place.the} from {weekday} to {weekday2}.",
        "{adult.le} {adult?travaille|travaillent} à {place.le} de le {weekday} à le {weekday2}.",
    ),
    Template(
        "{named} wrote a report of {number} pages about {building.the} in {town}.",
        "{named} a écrit un rapport de {number} pages sur {building.le} de {town}.",
    ),
    Template(
        "The meeting with {named} will begin on {weekday} at {time}.",
        "La réunion avec {named} commencera {weekday} à {time}.",
    ),
    Template(
        "The company hired {number} people in {month} and {number2} more in {year}.",
        "L'entreprise a embauché {number} personnes en {month} et {number2} de plus en {year}.",
    ),
    Template(
        "{named} has been a {job} in {town} for {count} years.",
        "{named} est {job} à {town} depuis {count} ans.",
    ),
    Template(
        "{number}% of the inhabitants of {town} have visited {place.the} this year.",
        "{number} % des habitants de {town} ont visité {place.le} cette année.",
    ),
    Template(
        "{relative.my} would like to become a {job} and work {country}.",
        "{relative.mon} voudrait devenir {job} et travailler {country}.",
    ),
]

SCHOOL = [
    Template(
        "{group.the} are learning {subject} and {subject2} with {named} this year.",
        "{group.le} apprennent {subject.le} et {subject2.le} avec {named} cette année.",
    ),
    Template(
        "{friend} has {count} hours of {subject} and {count2} hours of {subject2}.",
        "{friend} a {count} heures de {subject} et {count2} heures de {subject2}.",
    ),
    Template(
        "The pupils must read {number} pages before the {subject} exam on {weekday}.",
        "Les élèves doivent lire {number} pages avant l'examen de {subject} de {weekday}.",
    ),
    Template(
        "{friend} forgot {item.its friend} and {object.its friend} at school {past}.",
        "{friend} a oublié {item.son friend} et {object.son friend} à l'école {past}.",
    ),
    Template(
        "{person.the} {person?finds|find} {subject} more difficult than {subject2}.",
        "{person.le} {person?trouve|trouvent} {subject.le} plus difficile que {subject2.le}.",
    ),
]

SPORT = [
    Template(
        "{person.the} {person?plays|play} {game} with {relative.my} {habit}.",
        "{person.le} {person?joue|jouent} à {game.le} avec {relative.mon} {habit}.",
    ),
    Template(
        "{friend} has been playing the {instrument} with {person.the} for {count} years.",
        "{friend} joue de {instrument.le} avec {person.le} depuis {count} ans.",
    ),
    Template(
        "The team from {town} won the match {score} against the team from {town2}.",
        "L'équipe de {town} a gagné le match {score} contre l'équipe de {town2}.",
    ),
    Template(
        "{named} walked {decimal} kilometers in {count} hours on {weekday}.",
        "{named} a parcouru {decimal} kilomètres à pied en {count} heures {weekday}.",
    ),
    Template(
        "{relative.my} prefers {game} to {game2}, especially when {weather}.",
        "{relative.mon} préfère {game.le} à {game2.le}, surtout quand {weather}.",
    ),
    Template(
        "{friend} plays the {instrument}, and {person.the} {person?plays|play} the {instrument2}.",
        "{friend} joue de {instrument.le}, et {person.le} {person?joue|jouent} de "
        "{instrument2.le}.",
    ),
]

TIME = [
    Template(
        "It was already {time} when {person.the} came home.",
        "Il était déjà {time} quand {person.le} {person?est|sont} "
        "rentré{person?|e|s|es} à la maison.",
    ),
    Template(
        "{place.the} is closed on {weekday}s in {month} and on {day}.",
        "{place.le} est fermé{place?|e|s|es} le {weekday} en {month} et le {day}.",
    ),
    Template(
        "{person.the} {person?gets|get} up at {early} on {weekday}s.",
        "{person.le} {person?se lève|se lèvent} à {early} le {weekday}.",
    ),
    Template(
        "{friend} was {do.ing} in {room.the} when {person.the} arrived.",
        "{friend} {do.imperfect} dans {room.le} quand {person.le} {person?est|sont} "
        "arrivé{person?|e|s|es}.",
    ),
    Template(
        "{friend} {chore} with {relative.my} {manner} {habit}.",
        "{friend} {chore} avec {relative.mon} {manner} {habit}.",
    ),
    Template(
        "The concert at {sight.the} begins at {late} and lasts {number} minutes.",
        "Le concert à {sight.le} commence à {late} et dure {number} minutes.",
    ),
]

PEOPLE = [
    Template(
        "{person.the} {person?is|are} {mood} because {person?he|she|they|they} {reason} "
        "this morning.",
        "{person.le} {person?est|sont} {mood person} parce "
        "{person?qu'il a|qu'elle a|qu'ils ont|qu'elles ont} {reason} ce matin.",
    ),
    Template(
        "{friend} is {number} years old, and {friend2} is {count} years younger.",
        "{friend} a {number} ans, et {friend2} a {count} ans de moins.",
    ),
    Template(
        "{someone.the} that I met in {town} {past} speaks {count} languages.",
        "{someone.le} que j'ai rencontré{someone?|e|s|es} à {town} {past} parle {count} langues.",
    ),
    Template(
        "{friend} must go to {place.the} with {person.the} before {late}.",
        "Il faut que {friend} aille à {place.le} avec {person.le} avant {late}.",
    ),
    Template(
        "{friend} would like to {get.base} {thing.a} for {relative.my}.",
        "{friend} voudrait {get.infinitive} {thing.un} pour {relative.mon}.",
    ),
    Template(
        "{person.the} went for a walk with {relative.my} near {building.the} {past}.",
        "{person.le} {person?s'est|se sont} promené{person?|e|s|es} avec {relative.mon} près de "
        "{building.le} {past}.",
    ),
    Template(
        "{named} was born in {town} on {date}.",
        "{named} est né{named?|e|s|es} à {town} le {date}.",
    ),
    Template(
        "Do you know {named}, who works with {relative.my} at {place.the}?",
        "Connaissez-vous {named}, qui travaille avec {relative.mon} à {place.le} ?",
    ),
    Template(
        "{person.the} will {get.base} {thing.a} and {garment.a} {future}.",
        "{person.le} {get.future person} {thing.un} et {garment.un} {future}.",
    ),
    Template(
        "Where did {person.the} {get.base} {thing.this} and {object.this}?",
        "Où est-ce que {person.le} {get.past person} {thing.ce} et {object.ce} ?",
    ),
    Template(
        "Who will {treat.base} {item.the} when {person.the} {person?is|are} {country}?",
        "Qui {treat.future} {item.le} quand {person.le} {person?sera|seront} {country} ?",
    ),
    Template(
        "{relative.my} is {count} years older than {named} but does not look it.",
        "{relative.mon} a {count} ans de plus que {named} mais ne les fait pas.",
    ),
]

TEMPLATES = [*WORK, *SCHOOL, *SPORT, *TIME, *PEOPLE]
