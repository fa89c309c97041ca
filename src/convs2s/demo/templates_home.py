"""Sentence templates about home, kitchen, clothes, animals, and the things around us."""

from convs2s.demo.notation import Template

THINGS = [
    Template(
        "{person.the} {see.present person} {thing.a}.",
        "{person.le} {see.present person} {thing.un}.",
    ),
    Template(
        "{past}, {person.the} {get.past person} {thing.a} in {town}.",
        "{past}, {person.le} {get.past person} {thing.un} à {town}.",
    ),
    Template(
        "{item.the} is on {surface.the} in {room.the}.",
        "{item.le} est sur {surface.le} dans {room.le}.",
    ),
    Template(
        "There are {things.a} and {pet.a} in {room.the}.",
        "Il y a {things.un} et {pet.un} dans {room.le}.",
    ),
    Template(
        "I cannot find {item.my}; perhaps it is under {surface.the}.",
        "Je ne trouve pas {item.mon} ; {item?il|elle|ils|elles} est peut-être sous {surface.le}.",
    ),
    Template(
        "{thing.this} {thing?belongs|belong} to {named}, who lives in {town}.",
        "{thing.ce} {thing?appartient|appartiennent} à {named}, qui habite à {town}.",
    ),
    Template(
        "Which {object} do you prefer, the {color} one or the {color2} one?",
        "{object.quel} préférez-vous, {object?le|la|les|les} {color object} ou "
        "{object?le|la|les|les} {color2 object} ?",
    ),
    Template(
        "{item.the} is as {quality} as {object.the}, but not as {quality2}.",
        "{item.le} est aussi {quality item} que {object.le}, mais moins {quality2 item}.",
    ),
    Template(
        "{person.the} {person?does|do} not {get.base} {thing.the} because "
        "{thing?it is|they are} too {fault}.",
        "{person.le} ne {get.present person} pas {thing.le} parce "
        "{thing?qu'il est|qu'elle est|qu'ils sont|qu'elles sont} trop {fault thing}.",
    ),
    Template(
        "{relative.my} has just {get.participle} {thing.the} that {friend} saw in {town}.",
        "{relative.mon} vient de {get.infinitive} {thing.le} que {friend} a "
        "vu{thing?|e|s|es} à {town}.",
    ),
    Template(
        "All {objects.the} in {room.the} are {color}, except the ones that {friend} bought.",
        "{objects?tout|toute|tous|toutes} {objects.le} de {room.le} sont {color objects}, "
        "sauf {objects?celui|celle|ceux|celles} que {friend} a acheté{objects?|e|s|es}.",
    ),
    Template(
        "What {item.a}, {relative.my} will be very {joy}!",
        "{item.quel}, {relative.mon} sera très {joy relative} !",
    ),
    Template(
        "{friend} is going to {treat.base} {things.the} with {person.the} {future}.",
        "{friend} va {treat.infinitive} {things.le} avec {person.le} {future}.",
    ),
]

KITCHEN = [
    Template(
        "{person.the} {cook.present person} {dish.a} with {food.a}.",
        "{person.le} {cook.present person} {dish.un} avec {food.un}.",
    ),
    Template(
        "Add {grams} grams of {ingredient} and mix everything with {ingredient2.the}.",
        "Ajoutez {grams} grammes de {ingredient} et mélangez le tout avec {ingredient2.le}.",
    ),
    Template(
        "There is no more {ingredient} in the kitchen, but there is still {drink.a}.",
        "Il n'y a plus de {ingredient} dans la cuisine, mais il reste {drink.un}.",
    ),
    Template(
        "Could you pass me {ingredient.the} and {tableware.the}, please?",
        "Pourriez-vous me passer {ingredient.le} et {tableware.le}, s'il vous plaît ?",
    ),
    Template(
        "Cook {course.the} for {number} minutes, then add {food.a} and {produce.a}.",
        "Faites cuire {course.le} pendant {number} minutes, puis ajoutez {food.un} "
        "et {produce.un}.",
    ),
    Template(
        "{relative.my}'s {course} is always better than {named}'s {course2}.",
        "{course.le} de {relative.mon} est toujours "
        "{course?meilleur|meilleure|meilleurs|meilleures} que {course2.le} de {named}.",
    ),
    Template(
        "{person.the} {person?drinks|drink} {drink.a} with {relative.my} {habit}.",
        "{person.le} {person?boit|boivent} {drink.un} avec {relative.mon} {habit}.",
    ),
    Template(
        "{person.the} never {person?eats|eat} {ingredient}, but {person?likes|like} {fruit} a lot.",
        "{person.le} ne {person?mange|mangent} jamais de {ingredient}, mais "
        "{person?aime|aiment} beaucoup {fruit.le}.",
    ),
    Template(
        "{friend} {cook.past} {dish.a} for {relative.my} and {person.the} {past}.",
        "{friend} {cook.past} {dish.un} pour {relative.mon} et {person.le} {past}.",
    ),
]

CLOTHES = [
    Template(
        "{someone.the} is wearing {garment.a} and {garment2.a} today.",
        "{someone.le} porte {garment.un} et {garment2.un} aujourd'hui.",
    ),
    Template(
        "{garment.this} is too {size} for {relative.my}, but {friend} likes it.",
        "{garment.ce} est trop {size garment} pour {relative.mon}, mais "
        "{garment?il|elle|ils|elles} plaît à {friend}.",
    ),
    Template(
        "{relative.my} gave me {garment.a} and {item.a} for my birthday.",
        "{relative.mon} m'a offert {garment.un} et {item.un} pour mon anniversaire.",
    ),
    Template(
        "Take {garment.the} with you, because {weather} in {town}.",
        "Prenez {garment.le} avec vous, parce que {weather} à {town}.",
    ),
]

ANIMALS = [
    Template(
        "{animal.the} {animal?is|are} sleeping under {surface.the} in {room.the}.",
        "{animal.le} {animal?dort|dorment} sous {surface.le} dans {room.le}.",
    ),
    Template(
        "{person.the} {person?gives|give} some fresh water to {animal.the} {habit}.",
        "{person.le} {person?donne|donnent} de l'eau fraîche à {animal.le} {habit}.",
    ),
    Template(
        "{someone.the} who lives in {town} has {animal.a} and {pet.a}.",
        "{someone.le} qui habite à {town} a {animal.un} et {pet.un}.",
    ),
    Template(
        "{relative.my} does not have {pet.a}, but would like to have {animal.a}.",
        "{relative.mon} n'a pas de {pet}, mais voudrait avoir {animal.un}.",
    ),
    Template(
        "The children are afraid of {animal.the} near {building.the}.",
        "Les enfants ont peur de {animal.le} près de {building.le}.",
    ),
    Template(
        "How many {fruit} does {pet.this} eat in a week?",
        "Combien de {fruit} {pet.ce} mange-t-{pet?il|elle|ils|elles} en une semaine ?",
    ),
]

TEMPLATES = [*THINGS, *KITCHEN, *CLOTHES, *ANIMALS]
