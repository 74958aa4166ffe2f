/** Words that say where to, under which condition and in which mood. */

export const directions = {
  BETWEEN: 'between',
  ABOVE:
    'above|over|hits|hit|reaches|reach|goes above|goes over|rises to|rises above|climbs to|climbs above|breaks above|breaks|gets to|goes up to|exceeds|touches|higher than|more than|crosses|crosses above|goes to|pumps to|tops|trades above|trades over|is above|is over|rises|climbs|rallies to|gets above|moves above|trades at|greater than|at or above|at least|spikes to|break|broken|broke',
  BELOW:
    'below|under|drops to|drop to|drops below|drops under|falls to|falls below|falls under|dips to|dips below|dips under|goes below|goes under|goes down to|dip to|lower than|less than|crosses below|sinks to|trades below|trades under|is below|is under|gets below|gets down to|declines to|drops|falls|dips|retraces to|at or below|crashes to|breaks below|slides to|moves below|fall to|fall below|drop below|dip below|at most|down to',
  AT: 'at|@|for a price of|limit price|at a price of|limit at|when price is|around',
  FROM: 'from|out of|off|leaving',
  TO: 'to|into|for|in|onto|over to|across to|toward|towards|as',
  ON: 'on|via|using|over on|inside|through',
  OF: 'of|worth of|in value of|worth',
  IN: 'in',
  FOR: 'for',
  AS: 'as',
  ARTICLE: 'a|an',
  MINE: 'my|our|mine',
  ALL: 'all|all of|everything|everything i have|everything i own|entire|whole|full|max|maximum|every|all the|each|fully|completely|entirely|every single|all remaining',
  REST: 'the rest|rest|remaining|remainder|what is left|the remaining|leftover|the proceeds|proceeds|whatever is left|the remainder',
  IT: 'it|that|them|this|those|these|that one|this one|that token|this token|the token|that coin|this coin',
  PAYWITH: 'with|using|use|by paying|paying with|paying|funded by|from my',
  UNTIL:
    'until|till|expires|expiring|expire|valid for|good for|valid until|expires in|for the next|good until|expiry|expires on|good till|ends',
  DOWN: 'down|lower|loss|drop|drawdown|falls by|drops by',
  UP: 'up|gain|higher|profit|rises by',
}

export const moods = {
  HOWMUCH: 'how much|how many',
  IF: 'if|once|as soon as|in case|unless|provided|provided that|assuming|whenever|only if|as long as|when|after it|until it|the moment|should it|depending on',
  SUPPOSE:
    'what if|suppose|hypothetically|imagine|say i|lets say|let us say|theoretically|if i|if we|if you|were i to|had i|pretend|for example|thinking of|thinking about|considering|consider|contemplating|might|maybe|perhaps|one day|someday|planning to|plan to|wondering|hypothetical|in theory|simulate|simulation|dry run|test run|may|debating|tempted|tempted to|would like to someday|if someone|dreaming|wish i|i wish|i could|could i|would i|i would|id consider|eventually|in the future|at some point|sometime|imagine i|scenario|possibly|potentially|id|preview|estimate|not sure|undecided|unsure',
  NEGATE:
    "don't|dont|do not|never|no need to|without|won't|wont|will not|not|avoid|refrain|refrain from|doesn't|doesnt|can't|cannot|shouldn't|should not|mustn't|must not|no longer|instead of|rather than|wouldn't|would not|didn't|didnt|did not|haven't|isn't|aint|ain't|stop buying|stop selling|hold off|hold off on|quit|neither|nor|nobody|nothing|not yet|none of",
  REPORT:
    'said|says|say to|told me|told you|tells me|according to|recommends|recommended|suggests|suggested|wrote|writes|tweeted|tweets|posted|heard|advised|advises|wants me to|asked me to|asks me to|told us|instructs|instructed|claims|claimed|read that|article|he thinks|she thinks|they think|thinks i should|the description|description|prompt|instructions|instruction|message says|quoted|mentions|mentioned|saying|the text|was written|written|he wants|she wants|they want|wants you to|orders me|begs|insists|newsletter|website|telegram|twitter|reddit|discord|youtube|email|influencer|guru|tip from',
  PAST: 'yesterday i|i already|already|i have already|i just|i had|earlier i|used to|last time',
  QUESTION:
    "what|what's|whats|how|how's|hows|which|who|who's|whose|where|where's|why|is|are|am|does|did|was|were|has|have|can i|can we|will|should|would it|when did|when will|when is|when does|when do|when was|when can|isn't|aren't|do you|do i|do we|am i|any|could it|is there|are there|whether|does it|what are|how many|how much|how long|would|when should|when did i|where do i",
  ASKHOW:
    'how do i deposit|how can i deposit|how do i fund|how do i add money|how do i use|should it|should not|should',
  POLITE:
    'can you|could you|would you|will you|can u|could u|would you mind|would you please|will you please|can you please|could you please|please can you|i want you to|i need you to|id like you to|would like you to|can we|i would like you to|mind',
  WANT: "i want to|i'd like to|i would like to|i wanna|wanna|i need to|let's|lets|lets go ahead and|lets go ahead|let us|let me|want to|would like to|like to|need to|i'd love to|help me|help me to",
  FILLER:
    'please|pls|plz|now|just|so|then|and|well|quickly|immediately|asap|kindly|actually|alright|right now|right away|also|hey|hi|hello|ok|okay|yo|cool|great|thanks|go ahead and|bro|man|dude|buddy|mate|portico|the|a|an|some|um|uh|hmm|oh|today|go|sure|yes|yeah|next|first|finally|lastly|afterwards|plus|kindly|fine|good|perfect|simply|directly|at once|straight away|urgent|urgently|hurry|quick|guys|sir|friend please|all right|one more|another|i said|like|fast|thx|btw|lol|tbh|also please|new|rn|atm|currently|exactly|roughly|approximately|still|yet',
  EXCEPT:
    'except|except for|besides|apart from|excluding|other than|all but|everything but|anything but|unlike|minus|save for|aside from|or|either|jk|just kidding|kidding|joking',
  AND: 'and',
  JOINT: 'and|plus',
  THEN: 'then|and then|after that|afterwards|afterward|next|followed by|subsequently|later on|once done|when done|once that is done|once it is done|when that is done|and after that|and afterwards|before that',
  NEUTRAL:
    'buy pressure|sell pressure|buy wall|sell wall|buy side|sell side|sell off|selloff|long term|short term|long time|short time|long run|short run|short squeeze|long squeeze|long story short|long live|close call|short notice|market cap|order book|close price|closing price|opening price|open source|swap fee|swap fees|bridge fee|bridge fees|trade war|trade deal|stop hunting|how long|as long|so long|trading volume|close to|open to|buyers|sellers|buyer|seller|trader|traders|trading|short answer|in short|long list|best trade|exchange rate|exchange rates',
}
