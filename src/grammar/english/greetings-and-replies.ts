/** Greetings, decisions, and words that refer to an earlier message or to one of its proposals. */

export const talk = {
  HELP: 'help|what can you do|what can i do|commands|how does this work|features|capabilities|what do you do|what are you|who are you|options do i have|get started|what else can you|how do i use|what can i ask|examples|your abilities|what are my options|menu|usage',
  GREET:
    'hello|hi|hey|good morning|good evening|good afternoon|yo|gm|howdy|hiya|sup|hello there|hi there|hey there|greetings|what is up|how are you|morning',
  THANKS:
    'thanks|thank you|thx|ty|cheers|appreciate it|great job|nice work|much appreciated|thanks a lot|good bot|awesome|perfect|great|nice|cool|good job|well done|bye|goodbye|see you',
  ACCEPT:
    'do it|go ahead|yes|yep|yeah|yup|sure|ok do it|execute it|execute|accept|accept it|sounds good|lets do it|make it so|proceed|confirm|confirmed|please do|go for it|ship it|yes please|i accept|run it|do that|lets go|ok go|make it happen|approved|aye|take it|do the first one|do the second one|ok|okay|alright|y|correct|right|exactly|absolutely|of course|definitely|place it|send the order|yes do it|go',
  DECLINE:
    'decline|reject|no thanks|no thank you|nope|skip|skip it|dismiss|not now|pass|i decline|leave it|never mind|nevermind|forget it|forget that|cancel that|cancel it|stop that|scratch that|ignore it|ignore that|rather not|dont do it|do not do it|abort|nah|no|n|dismiss it|turn it down|not interested',
  CALLOFF: 'cancel that|cancel it',
  RECOMMENDATION:
    'recommendation|recommendations|suggestion|suggestions|proposal|proposals|your idea|your suggestion|what you suggested|what you proposed|that idea|the offer',
  AGAIN:
    'again|same|same again|the same|do the same|repeat|repeat that|once more|one more time|do that again|same thing|same trade|same for|the same for',
  OVERRIDE:
    'make it|make that|change it to|change that to|change to|use|rather|instead|actually|i meant|i mean|what about|how about|and for|and on|and in|but on|but for|only|no|sorry|not that|on second thought|and|or|with|try',
  SHOW: 'show|show me|list|display|see|view|check|pull up|print|look up|fetch|let me see|which|lets see|list all|tell me|let me know|give me a list of',
  ACTIVE: 'active|ready|enabled|live|set|complete',
  ACCOUNTWORD: 'account|side|wallet',
  LAST: 'last|latest|previous|most recent',
  ORDINAL1: 'first|the first|first one|the first one|1st|option one|number one|former',
  ORDINAL2:
    'second|the second|second one|the second one|2nd|option two|number two|the latter|latter|last one',
  ORDINAL3: 'third one|the third one|3rd|option three|number three',
  ORDINAL4: 'fourth|the fourth|fourth one|4th|option four|number four',
}
