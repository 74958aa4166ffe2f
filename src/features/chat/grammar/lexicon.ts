/**
 * The words of the language, as data. A concept is what several phrases mean alike; the longest phrase wins. Verbs in
 * their base form are actions; inflected forms have a concept of their own that ends in `_`, so that a statement about
 * an action is never the action.
 */
export type Lexicon = { concepts: Readonly<Record<string, string>>; actions: ReadonlySet<string> }

/** What may begin an order. */
const verbs: Record<string, string> = {
  BUY: 'buy|buy me|purchase|grab|pick up|get me|acquire|ape|ape into|scoop up|snag|get some|load up on|spend|invest|accumulate|bag me|stack',
  SELL: 'sell|dump|offload|unload|get rid of|ditch|liquidate my|cash out|cash in|sell off',
  SWAP: 'swap|convert|exchange|trade|turn|flip|rotate|change',
  BRIDGE: 'bridge|bridge over',
  MOVE: 'move|send|transfer|shift|wire',
  PUT: 'put|throw|stick|park|place',
  LONG: 'long|go long|go long on',
  SHORT: 'short|go short|go short on',
  OPEN: 'open|enter',
  CLOSE: 'close|exit|flatten|close out|get out of|get me out of|unwind',
  REDUCE: 'reduce|trim|cut|decrease|scale out of|lighten|shrink|halve',
  CANCEL: 'cancel|delete|remove|forget|drop|scrap|void|take back|kill|pull|clear|withdraw my orders|revoke',
  SET: 'set|add|attach|create|leave|make|update|adjust|change|place|put',
  PROTECT: 'protect|guard|bracket|secure',
  DEPOSIT: 'deposit|stake|supply|put to work|lend|save|lock|park|add',
  WITHDRAW: 'withdraw|take out|pull|pull out|redeem|unstake|take|get back|move out|remove',
  FUND: 'fund|top up|load|finance|add funds|add margin|add collateral|add money',
  RECHARGE: 'recharge|refill|top up|reload',
  FREEZE:
    'freeze|halt|freeze everything|stop everything|stop all trading|stop trading|pause everything|pause trading|pause all trading|halt everything|halt trading|halt all trading|lock everything|lock my account|freeze my account|panic|emergency stop|shut everything down|shut it all down|stop all activity|block all trading|disable trading|disable all trading|kill switch on|kill switch now|turn on the kill switch|switch on the kill switch|hit the kill switch|activate the kill switch|engage the kill switch|pull the kill switch|press the kill switch|enable the kill switch|use the kill switch|kill switch',
  RESUME:
    'unfreeze|unpause|resume trading|resume|turn trading back on|turn trading on again|reenable trading|re enable trading|enable trading|lift the kill switch|lift the freeze|turn off the kill switch|switch off the kill switch|disable the kill switch|deactivate the kill switch|release the kill switch|kill switch off|start trading again|allow trading again',
  LOWER: 'lower|decrease|reduce|cap|tighten|restrict|limit|cut|set|drop|bring down|change|make',
  RAISE: 'raise|increase|lift|loosen|bump|bump up|extend|double|widen',
  APPROVE: 'approve|authorise|authorize|sign off on|approve all',
  SETUP:
    'set up|setup|prepare|enable|activate|get ready|get me ready|get me set up|provision|initialise|initialize|make ready|get started with',
  ASKAPPROVAL:
    'ask for approval|ask me before|require approval|require my approval|ask me above|ask me over|ask me for|ask before',
  GIVE: 'give me|i want|i need|want|need',
}

/** The same verbs where they are no order. */
const inflected: Record<string, string> = {
  BUY_: 'bought|buying|buys|purchased|purchasing|grabbed|acquired|spent|invested|investing|spending',
  SELL_: 'sold|selling|sells|dumped|dumping|dumps|offloaded|cashed out|cashing out|sale',
  SWAP_:
    'swapped|swapping|swaps|converted|converting|exchanged|exchanging|traded|turned|rotated|changed|flipped|conversion',
  BRIDGE_: 'bridged|bridging|bridges',
  MOVE_: 'moved|sent|transferred|sending|moving|transferring|transfers',
  LONG_: 'longed|longing|longs|going long|went long',
  SHORT_: 'shorted|shorting|shorts|going short|went short',
  OPEN_: 'opened|opening|entered|entering',
  CLOSE_: 'closed|closing|exited|exiting',
  CANCEL_: 'cancelled|canceled|cancelling|canceling|deleted|removed',
  DEPOSIT_: 'deposited|depositing|deposits|staked|staking|supplied|parked',
  WITHDRAW_: 'withdrew|withdrawn|withdrawing|withdrawal|withdrawals|pulled',
  SETUP_: 'ready for|set up for|activated|provisioned',
}

const markets: Record<string, string> = {
  PRICE:
    'price|prices|priced|quote for|worth|value|cost|costs|rate of|trading at|trade at|going for|trades at|valued|where is|how much is|how much for|how much are|spot price|mark price|current price|market price|exchange rate|market value|is at|are at|sitting at',
  CHANGE:
    'up or down|moved|move today|moving|change|changed|changing|perform|performed|performing|performance|doing|do today|gone up|gone down|go up|go down|risen|rising|fallen|falling|pump|pumping|pumped|dumping|up today|down today|gained|lost today|do this|do in|do over|do during|do last|do lately|do since',
  COMPARE:
    'compare|compared|comparison|versus|vs|against|better|stack up|stacks up|outperform|outperformed|outperforming|relative to|side by side|stronger|weaker|which did better',
  MARKET:
    'market|markets|coins|coin list|crypto|everything|tickers|movers|perps list|tokens|pairs|universe|perpetuals|perps',
  OVERVIEW:
    'overview|summary|summarise|summarize|snapshot|recap|market update|state of the market|how is the market|how are the markets|market doing|markets doing|market today|markets today|market look|markets look|market conditions|list|how are markets|top|biggest|largest|highest|best|worst|lowest|most|ranking|rank',
  GAINERS:
    'gainers|gainer|winners|top performers|best performing|best performers|biggest winners|rallied|up the most|gained most|gained the most|hottest|trending|pumping|movers|top movers|biggest movers|strongest|green',
  LOSERS:
    'losers|loser|worst performing|worst performers|down the most|lost the most|lost most|biggest drops|weakest|bleeding|red',
  VOLUME: 'volume|most traded|volumes|liquid|most liquid|turnover|active markets|most active',
  INTEREST: 'open interest|oi',
  FUNDING:
    'funding|funding rate|funding rates|funding fee|funding fees|fundings|funding wise|cost to hold|carry',
  ANALYSIS:
    'analysis|analyse|analyze|technical analysis|technicals|ta|overbought|oversold|trend|trending up|trending down|bullish|bearish|outlook|setup on|trade idea|trade ideas|trade setup|entry|good entry|support and resistance|support levels|resistance levels|support level|resistance level|resistance|key levels|levels|momentum|volatility|volatile|good time|right time|bad time|good idea|bad idea|smart to|wise to|risky|take on|your view|view on|thoughts on|think of|think about|opinion on|what do you think|market analysis|signals|signal|breakout|correlation|drawdown|seasonality|good buy|worth buying|good trade|worth it|make sense|makes sense|good moment',
  CHART: 'chart|charts|candles|candle|candlestick|candlesticks|graph|plot|draw|ohlc|klines|kline',
  INDICATOR: 'indicator|indicators',
  RESEARCH:
    'research|deep research|deep dive|research report|in depth report|full report|report|due diligence|fundamentals|write up|whitepaper|thorough analysis|dossier|study|investigate|fundamental analysis|dyor|write me a report|detailed report',
  SHOULD:
    'should i|should we|shall i|would you buy|would you sell|do you recommend|would it be wise|is it smart|worth it to',
  EXPLAIN:
    'explain|meaning|mean|means|define|definition|difference between|how does|how do|how can i|how can we|how to|how do i|how do you|tutorial|guide|teach me|what is a|what is an|walk me through|steps to|help me understand|learn about|what is the difference|how would i|where do i|how should i|how is a|works|work',
}

const indicatorWords: Record<string, string> = {
  '#rsi': 'rsi|relative strength',
  '#macd': 'macd',
  '#bollinger': 'bollinger|bollinger bands|bbands|bands',
  '#sma': 'sma|moving average|moving averages|simple moving average|ma',
  '#ema': 'ema|exponential moving average|emas',
  '#atr': 'atr|average true range',
  '#adx': 'adx',
  '#stochastic': 'stochastic|stoch',
  '#vwap': 'vwap',
  '#obv': 'obv|on balance volume',
  '#donchian': 'donchian',
  '#supertrend': 'supertrend',
}

const portfolio: Record<string, string> = {
  HAVE: 'i have|do i still have|do i still own|do i have|i own|do i own|i hold|do i hold|i got|have i got|i have left|do we have|holdings|holding|balance|balances|my tokens|my coins|my bag|my bags|my stack|in my wallet|in my wallets|my wallet|my wallets|my money|my funds|my assets|am i holding|i still have|left over|have left|what is in|my cash|own|hold',
  PORTFOLIO:
    'portfolio|net worth|total balance|everything i own|everything i have|account value|total value|total worth|my account worth|all my money|all my assets|how rich|total holdings|overall balance|i worth|whole account|allocation|exposure',
  PNL: 'pnl|p l|p and l|profit|profits|profit and loss|unrealized|unrealised|realized|realised|gains|losses|making money|losing money|lose money|lost money|made money|make money|in profit|in the green|in the red|in loss|am i up|am i down|up on|down on|breakeven|break even|return on|returns on|roi|gain on|loss on|winning|losing|entry price|cost basis|average entry|average cost|i up|i down|have i made|have i lost|i make|i lose|did i make|did i lose|earnings on my trades',
  HISTORY:
    'history|transactions|transaction|past trades|recent trades|last trades|my trades|trades|activity|fills|fill history|executed|what did i|did i buy|did i sell|did i trade|did i swap|did i bridge|what have i|have i traded|have i bought|have i sold|did i do|statement|log of|past orders|order history|did i deposit|did i withdraw|i did|previous trades|last trade',
  ORDERS:
    'orders|order|open orders|pending orders|active orders|resting orders|outstanding orders|outstanding|resting|pending|waiting|what is waiting|still open|still waiting|triggers|conditional orders|unfilled|working orders|orders open',
  LIMIT:
    'limit order|limit orders|limit|limits orders|buy limit|sell limit|limit buy|limit sell|limit long|limit short',
  ADDRESS:
    'address|addresses|deposit address|receive|receiving address|where can i deposit|where do i send|where do i deposit|how do i deposit|how can i deposit|fund my account|fund my wallet|top up my wallet|add funds to my wallet|my wallet address|public key|where should i send|deposit to my wallet|how do i fund|how do i add money|wallet addresses|where to send|where to deposit|pay in|qr code|send funds to',
  POSITION: 'position|positions|open trades|my trade|exposure on|open positions|trade on perps',
  LIQUIDATION:
    'liquidation|liquidated|liquidation price|liq|liq price|liquidate|get liquidated|margin call|getting liquidated|rekt|margin used|margin ratio|from liquidation',
}

const products: Record<string, string> = {
  PERP: 'perp|perps|perpetual|perpetuals|futures|future|perp account|perp side|perps account|perpetual trading|futures account|futures trading|perp trading|derivatives|margin trading|trading account|hyperliquid account|margin account|on margin|perpetual futures',
  SPOT: 'spot|spot market|spot markets|spot side|on spot|spot account|spot venue|venue spot',
  MARGIN: 'margin|collateral',
  LEVERAGE: 'leverage|levered|leveraged|lev',
  ISOLATED: 'isolated|isolated margin',
  CROSS: 'cross margin|cross|cross margined',
  STOP: 'stop loss|stop losses|stoploss|sl|stop|stops|stop out|protective stop|exit if it falls|out at|cut losses|hard stop',
  TARGET:
    'take profit|take profits|takeprofit|tp|target|targets|profit target|price target|take profit order|tps',
  TRAILING: 'trailing stop|trailing|trailing stop loss|trail|trailing sl',
  SLIPPAGE: 'slippage|slip|max slippage|slippage tolerance|maximum slippage',
  PERPFROM:
    'from perps|from the perp account|out of perps|from my perp account|off perps|out of the perp account|from the perp side|from my perps|from perp|out of my perp account|off the perp side|out of the perps|from the perps|from hyperliquid|out of hyperliquid|from futures|out of futures|off the perp account|from the futures account|from my futures account|from the trading account|from my margin account|from margin',
  EARNFROM:
    'out of earn|out of the vault|from the vault|from earn|from my vault|out of my vault|from savings|out of savings|from my savings|out of my savings|from the earn vault|out of the earn vault|from the yield vault|out of the yield vault|off the vault|out of yield|from yield',
  PUTTOWORK:
    'put to work|to work|earn yield|earning yield|earn interest|earning interest|earn something|for yield|generate yield|to earn',
  GETS: 'would i get|do i get|will i get|can i get|could i get|would get|end up with|i receive|would that be|would it be|does that get me|get me in|would buy|can you get|would that get|will that get|would be|bring me|i would get|do you get|get me for|get for|would bring|would it bring|would come out|come out as|net me|would fetch|fetch|would buy me|would that buy|get in',
  QUOTEWORD:
    'quote|price me|quote me|swap quote|a quote|quote for|a quote for|get a quote|preview|dry run|simulate|indicative price|price quote',
  COSTME:
    'cost to buy|cost me to buy|would it cost|would cost|cost to get|cost to swap|cost to sell|how much to buy|fee to swap|cost of swapping',
  ADDS: 'add',
  TRADEWORD: 'trade|trades',
  STAKEWORD: 'stake',
  EARN: 'earn|vault|yield|savings|earn vault|yield vault|the vault|interest|earn product|earn position|earn positions|savings account|earn account|passive income|lending pool|yield product|earn program',
  APY: 'apy|apr|interest rate|yield rate|how much yield|what yield|how much interest|current apy|vault pay|vault pays|vault paying|vault give|vault gives|earn pay|earn rate|interest pay|rate on|rates on|yield now|how much can i earn|what can i earn|vault yield|pays on|yields|return of the vault|how much does earn',
  EARNED:
    'how much yield so far|earned|earnings|yield so far|made in the vault|my deposit|my deposits|my vault|my earn|earn positions|earn position|vault position|vault balance|interest so far|accrued|my yield|in the vault|in earn|deposited',
  TOKENWORD: 'token|tokens|coin|coins|contract|mint|memecoin|shitcoin',
  SCAM: 'scam|scams|honeypot|rug|rugpull|rug pull|rugged|safe|safety|secure to buy|security|security check|security report|legit|legitimate|trustworthy|dangerous|malicious|tax|taxes|sell tax|buy tax|audit|audited|can i sell it|let me sell|sellable|vet|risk check|fake|sus|suspicious|sketchy',
  CHAINWORD: 'chain|chains|network|networks|blockchain|blockchains|l2|l2s|rollup|rollups',
  SUPPORTED:
    'support|supported|supports|available|do you have|do you offer|do you list|listed|can i trade|can i buy|can i get|can i use|can i swap|can i long|can i short|can i bridge|tradable|tradeable|offered|which chain is|is on|served|do you know|serve|what chain is|which network is|on which chain|works with|cover',
  GAS: 'gas|gas fee|gas fees|gas price|gas prices|gas cost|gas costs|network fee|network fees|transaction fee|transaction fees|gwei|gasless|pay for gas|pay gas|need gas|fees',
}

const account: Record<string, string> = {
  CREDITS: 'credits|credit|credit balance|my credits|chat credits',
  PACK: 'pack|packs|credit pack|credit packs|bundle|bundles|pricing tiers|credits cost|credit cost|price of credits|cost of credits|credits package|how much are credits|get more credits|more credits',
  CHATPRICE:
    'cost of a message|price of a message|a message cost|message cost|messages cost|chat cost|chat price|price of the chat|cost of the chat|chat message cost|question cost|per message|per question|using this chat|this chat cost|does this cost|cost to chat|a chat cost|you cost|you charge|do you charge|price of chatting|cost to ask|asking cost|cost per query|a query cost|per chat|is this free|are you free|chat free|free to use|free chat|chat message|of this chat|research report cost|report cost|cost me to ask|chat with you|talking to you cost|charge me|charge per',
  LIMITS:
    'limits|limit|spending limit|spending limits|policy|my rules|caps|cap|allowance|allowed to spend|can i spend|i can spend|can i still spend|left to spend|risk limits|spend today|limit left|remaining limit|budget|guardrails|allowed to do|my maximum|spending cap|policies',
  DAILY:
    'daily limit|daily cap|per day|a day|daily|day limit|24h limit|each day|daily spending limit|daily spending|every day limit|in a day|daily budget|daily max',
  PERTX:
    'per transaction|per trade|each transaction|single transaction|per swap|transaction limit|every transaction|per tx|each trade|per order|one transaction|any transaction|single trade|any single|each swap|trade limit|tx limit|every trade|one trade',
  APPROVALABOVE:
    'approval above|approval over|ask for approval|ask me above|ask me over|require approval|approval threshold|confirm above|need my approval above|approval for anything above|approval for anything over|ask me before|ask before|approvals above|approvals over|require my approval|ask me for',
  APPROVALS:
    'approvals|approval|waiting for approval|pending approvals|needs approval|need approval|to approve|waiting for me|awaiting approval|approval queue|pending request|pending requests|the request',
  RECIPIENTS:
    'recipients|recipient|allowed addresses|address book|who can i send|whitelist|whitelisted|allowlist|saved addresses|contacts|send money to|allowed to receive|can i send to|can i pay',
  TASK: 'task|tasks|jobs|job|operation|operations|operation status|background tasks',
  WENT: 'go through|went through|gone through|succeed|succeeded|success|complete yet|completed yet|finished|done yet|is it done|executed yet|what happened to|status of|progress|still running|confirmed yet|land|landed|arrived|arrive|settled|filled yet|stuck|work out|how far|failed yet|worked|processed|get filled|got filled|through yet|update on my|happened with my|did that work',
  FAILED: 'failed|failing|errors|went wrong',
  RUNNING: 'running|in progress|in flight|unfinished|ongoing|active tasks|currently running',
  COMPLETED: 'completed tasks|finished tasks|completed',
  ACCOUNT:
    'who am i|my account|my profile|my user|account details|account info|account information|my plan|logged in as|my scopes|signed in as|my agent id|my user id|profile|account id|my permissions',
  HEALTH:
    'healthy|health|up and running|systems up|system status|service status|outage|down right now|operational|systems|are you up|are you down|is it down|status of the service|is the service|everything working|online|anything broken|service down|gateway down|service up',
  NOTIFICATION:
    'notifications|notification|alerts|what is new|anything new|events|recent events|did i miss|updates for me|inbox|happened to my account|what did i miss',
}

const refused: Record<string, string> = {
  NEWS: 'news|headlines|headline|happened in crypto|announcement|announcements|rumour|rumor|rumours|rumors|tweets|twitter sentiment|articles|press|latest on|why is|why did|why are|sentiment on twitter|breaking|media',
  FORECAST:
    'will|predict|prediction|forecast|going to hit|going to reach|gonna hit|where will|price prediction|next year|in five years|by the end of the year|by year end|going to be|will be worth|predictions|going to moon|gonna moon|how high|how low|moon|crystal ball|going to go|going to pump|going to dump|going to crash|future price|100x|eoy',
  PREDMKT:
    'polymarket|prediction market|prediction markets|odds|bet|bets|betting|wager|odds of|election|yes shares|no shares|rate cut|who wins|my bets|kalshi|event contracts|gamble',
  SCHEDULE:
    'schedule|scheduled|dca|dollar cost average|recurring|automate|automatically|strategy|strategies|bot|every week|weekly|every month|monthly|every hour|hourly|every morning|every day|each day at|each week|each month|each morning|every few|every other|on autopilot|auto buy|auto invest|regularly|grid bot|rebalance|copy trade|copy trading|every weekday',
  WEEKDAY: 'monday|tuesday|wednesday|thursday|friday|saturday|sunday|weekday|weekdays|weekend',
  IMAGE:
    'image|picture|draw me|paint|illustration|logo|meme|drawing|photo|artwork|nft art|wallpaper|generate an image',
  SECRET:
    'seed phrase|private key|private keys|seed|mnemonic|recovery phrase|secret key|export my key|export my keys|secret phrase|keystore|password|api secret|export key|my keys',
  FIAT: 'credit card|debit card|bank|bank account|paypal|apple pay|fiat|iban|sepa|wire transfer|euros|euro|eur|visa|mastercard|venmo|cash app|google pay|my card|ach',
  OTHERPERSON:
    "friend|friend's|friends|mom|mum|brother|sister|someone|somebody|wife|husband|boss|girlfriend|boyfriend|colleague|another wallet|external wallet|other wallet|metamask|binance|coinbase account|kraken|exchange account|ens|landlord|other address|partner|phantom|ledger wallet|their wallet|his wallet|her wallet|another address|an address|my ledger|cold wallet|hardware wallet",
  NFT: 'nft|nfts|airdrop|airdrops|mint an|ico|presale|borrow|loan|mortgage|options|straddle|call option|put option|launch a token|create a token|deploy a token|lp position|provide liquidity|liquidity pool|flash loan',
}

const talk: Record<string, string> = {
  HELP: 'help|what can you do|what can i do|commands|how does this work|features|capabilities|what do you do|what are you|who are you|options do i have|get started|what else can you|how do i use|what can i ask|examples|your abilities|what are my options|menu|usage',
  GREET:
    'hello|hi|hey|good morning|good evening|good afternoon|yo|gm|howdy|hiya|sup|hello there|hi there|hey there|greetings|what is up|how are you|morning',
  THANKS:
    'thanks|thank you|thx|ty|cheers|appreciate it|great job|nice work|much appreciated|thanks a lot|good bot|awesome|perfect|great|nice|cool|good job|well done|bye|goodbye|see you',
  ACCEPT:
    'do it|go ahead|yes|yep|yeah|yup|sure|ok do it|execute it|execute|accept|accept it|sounds good|lets do it|make it so|proceed|confirm|confirmed|please do|go for it|ship it|yes please|i accept|run it|do that|lets go|ok go|make it happen|approved|aye|take it|do the first one|do the second one|ok|okay|alright|y|correct|right|exactly|absolutely|of course|definitely|place it|send the order|yes do it|go',
  DECLINE:
    'decline|reject|no thanks|no thank you|nope|skip|skip it|dismiss|not now|pass|i decline|leave it|never mind|nevermind|forget it|forget that|cancel that|cancel it|stop that|scratch that|ignore it|ignore that|rather not|dont do it|do not do it|abort|nah|no|n|dismiss it|turn it down|not interested',
  RECOMMENDATION:
    'recommendation|recommendations|suggestion|suggestions|proposal|proposals|your idea|your suggestion|what you suggested|what you proposed|that idea|the offer',
  AGAIN:
    'again|same|same again|the same|do the same|repeat|repeat that|once more|one more time|do that again|same thing|same trade|same for|the same for',
  OVERRIDE:
    'make it|make that|change it to|change that to|change to|use|rather|instead|actually|i meant|i mean|what about|how about|and for|and on|and in|but on|but for|only|no|sorry|not that|on second thought|and|or|with|try',
  SHOW: 'show|show me|list|display|see|view|check|pull up|print|look up|fetch|let me see|which|lets see|list all',
  ACTIVE: 'active|ready|enabled|live|set|complete',
  ACCOUNTWORD: 'account|side|wallet',
  LAST: 'last|latest|previous|most recent',
  ORDINAL1: 'first|the first|first one|the first one|1st|option one|number one|former',
  ORDINAL2:
    'second|the second|second one|the second one|2nd|option two|number two|the latter|latter|last one',
  ORDINAL3: 'third one|the third one|3rd|option three|number three',
  ORDINAL4: 'fourth|the fourth|fourth one|4th|option four|number four',
}

const directions: Record<string, string> = {
  ABOVE:
    'above|over|hits|hit|reaches|reach|goes above|goes over|rises to|rises above|climbs to|climbs above|breaks above|breaks|gets to|goes up to|exceeds|touches|higher than|more than|crosses|crosses above|goes to|pumps to|tops|trades above|trades over|is above|is over|rises|climbs|rallies to|gets above|moves above|trades at|greater than|at or above|at least|spikes to',
  BELOW:
    'below|under|drops to|drop to|drops below|drops under|falls to|falls below|falls under|dips to|dips below|dips under|goes below|goes under|goes down to|dip to|lower than|less than|crosses below|sinks to|trades below|trades under|is below|is under|gets below|gets down to|declines to|drops|falls|dips|retraces to|at or below|comes down to|crashes to|breaks below|slides to|moves below|fall to|fall below|drop below|dip below|at most|down to',
  AT: 'at|@|for a price of|limit price|at a price of|limit at|when price is|around',
  FROM: 'from|out of|off|leaving',
  TO: 'to|into|for|in|onto|over to|across to|toward|towards|as',
  ON: 'on|via|using|over on|inside|through',
  OF: 'of|worth of|in value of|worth',
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

/** Times that are one phrase, by the period that they mean. */
const periods: Record<string, string> = {
  '~1d': 'today|last day|past day|this day|since yesterday|intraday|day|this morning|24h|last night',
  '~yesterday': 'yesterday',
  '~1w': 'this past week|this week|last week|past week|the week|over the week|week|lately',
  '~1mo': 'this past month|this month|last month|past month|the month|over the month|month',
  '~3mo': 'this quarter|last quarter|past quarter',
  '~1y': 'this year|last year|past year|ytd|year to date|the year',
  '~all': 'all time|ever|so far|in total|since the beginning',
  tf1d: 'daily|daily chart|on the daily|1d chart|daily candles|daily timeframe',
  tf1h: 'hourly|hourly chart|on the hourly|hourly candles',
  tf1w: 'weekly|weekly chart|on the weekly|weekly candles',
  PAST_SPAN:
    'last|past|over the last|over the past|in the last|in the past|during the last|for the last|previous|since',
  FUTURE:
    'tomorrow|tonight|next week|next month|later today|this evening|end of day|end of the week|end of week',
  EVERY: 'every|each|per',
}

const moods: Record<string, string> = {
  IF: 'if|once|as soon as|in case|unless|provided|provided that|assuming|whenever|only if|as long as|when|after it|until it|the moment|should it|depending on',
  SUPPOSE:
    'what if|suppose|hypothetically|imagine|say i|lets say|let us say|theoretically|if i|if we|if you|were i to|had i|pretend|for example|thinking of|thinking about|considering|consider|contemplating|might|maybe|perhaps|one day|someday|planning to|plan to|wondering|hypothetical|in theory|simulate|simulation|dry run|test run|may|debating|tempted|tempted to|would like to someday|if someone|dreaming|wish i|i wish|i could|could i|would i|i would|id consider|eventually|in the future|at some point|sometime|imagine i|scenario|possibly|potentially|id|preview|estimate|not sure|undecided|unsure',
  NEGATE:
    "don't|dont|do not|never|no need to|without|won't|wont|will not|not|avoid|refrain|refrain from|doesn't|doesnt|can't|cannot|shouldn't|should not|mustn't|must not|no longer|instead of|rather than|wouldn't|would not|didn't|didnt|did not|haven't|isn't|aint|ain't|stop buying|stop selling|hold off|hold off on|quit|neither|nor|nobody|nothing|not yet|none of",
  REPORT:
    'said|says|say to|told me|told you|tells me|according to|recommends|recommended|suggests|suggested|wrote|writes|tweeted|tweets|posted|heard|advised|advises|wants me to|asked me to|asks me to|told us|instructs|instructed|claims|claimed|read that|article|he thinks|she thinks|they think|thinks i should|the description|description|prompt|instructions|instruction|message says|quoted|mentions|mentioned|saying|the text|was written|written|he wants|she wants|they want|wants you to|orders me|begs|insists|newsletter|website|telegram|twitter|reddit|discord|youtube|email|influencer|guru|tip from',
  PAST: 'yesterday i|i already|already|i have already|i just|i had|earlier i|used to|last time',
  QUESTION:
    "what|what's|whats|how|how's|hows|which|who|who's|whose|where|where's|why|is|are|am|does|did|was|were|has|have|can i|can we|will|should|would it|when did|when will|when is|when does|when do|when was|when can|isn't|aren't|do you|do i|do we|am i|any|could it|is there|are there|whether|does it|what are|how many|how much|how long|would|when should",
  POLITE:
    'can you|could you|would you|will you|can u|could u|would you mind|would you please|will you please|can you please|could you please|please can you|i want you to|i need you to|id like you to|would like you to|can we|i would like you to|mind',
  WANT: "i want to|i'd like to|id like to|i would like to|i wanna|wanna|i need to|let's|lets|let us|let me|i wish to|want to|would like to|like to|gonna|i am going to|i'm going to|i'll|ill|i will|time to|need to|id love to|i'd love to|help me|help me to|i have to|gotta|we need to|we should|i'm ready to|ready to|i intend to|i should",
  FILLER:
    'please|pls|plz|now|just|so|then|and|well|quickly|immediately|asap|kindly|actually|alright|right now|right away|also|hey|hi|hello|ok|okay|yo|cool|great|thanks|go ahead and|bro|man|dude|buddy|mate|portico|assistant|the|a|an|some|um|uh|hmm|oh|today|go|sure|yes|yeah|next|first|finally|lastly|afterwards|plus|kindly|fine|good|perfect|simply|directly|at once|straight away|urgent|urgently|hurry|quick|guys|sir|friend please|all right|one more|another|i said|like|fast|thx|btw|lol|tbh|also please|new',
  THEN: 'then|and then|after that|afterwards|afterward|next|followed by|subsequently|later on|once done|when done|once that is done|once it is done|when that is done|and after that|and afterwards|before that',
  NEUTRAL:
    'buy pressure|sell pressure|buy wall|sell wall|buy side|sell side|sell off|selloff|long term|short term|long time|short time|long run|short run|short squeeze|long squeeze|long story short|market cap|order book|close price|closing price|opening price|open source|swap fee|swap fees|bridge fee|bridge fees|trade war|trade deal|stop hunting|how long|as long|so long|trading volume|close to|open to|buyers|sellers|buyer|seller|trader|traders|trading|short answer|in short|long list|best trade|exchange rate|exchange rates',
}

/** Words of the language that name nothing here; a misspelt word is never one of them. */
export const plainWords =
  'the a an and or but of to in on at for from with by as is are was were be been being i you he she we they me him her us my your his their our this that these those it its there here what which who whom when where why how all any some each every both few more most other such only own same so than too very can could will would shall should may might must do does did have has had having not no nor about after again before between during through under over above below up down out off then once just now also into onto per via until while because if else get got give given go goes going make made want wants need needs like know think see say said tell show check look find much many lot lots little less least best worst good bad big small high low new old first last next long short time day week month year today tomorrow yesterday please thanks really still ever never always often money cash thing things something anything nothing everything people person friend left right way around near without within against still quite pretty maybe back even well am let usual one two three four five six seven eight nine ten whole there their them started start using used use place happy since early late ago during yet enough able name number amount total size level side part kind type list line state point case fact house home work works team game play read write talk speak call called words word text message page site link color sea poem france capital country city water food music movie weather joke story book recipe sports football'.split(
    ' ',
  )

/** Symbols that are words too count in capitals, with a dollar sign, or where an asset is expected. */
export const commonSymbols = new Set(
  'near one gas link me get go do not for on real fun safe people cat dog just her him all any can trust cash gold win play now new big art ray mask super story magic high time move beam prime core form hot ten rose sun lit cow bat ant band key loom moon uni gala sand flow op id not ip s h'.split(
    ' ',
  ),
)

export const nicknames = {
  assets: {
    bitcoin: 'BTC',
    bitcoins: 'BTC',
    btcs: 'BTC',
    ethereum: 'ETH',
    ether: 'ETH',
    eths: 'ETH',
    solana: 'SOL',
    sols: 'SOL',
    hyperliquid: 'HYPE',
    dogecoin: 'DOGE',
    doge: 'DOGE',
    ripple: 'XRP',
    avalanche: 'AVAX',
    chainlink: 'LINK',
    tether: 'USDT',
    'usd coin': 'USDC',
    usdcs: 'USDC',
    aerodrome: 'AERO',
    dogwifhat: 'WIF',
    jupiter: 'JUP',
    matic: 'POL',
  },
  chains: {
    eth: 'ethereum',
    mainnet: 'ethereum',
    'eth mainnet': 'ethereum',
    'ethereum mainnet': 'ethereum',
    arb: 'arbitrum',
    'arbitrum one': 'arbitrum',
    sol: 'solana',
    poly: 'polygon',
    matic: 'polygon',
    'base chain': 'base',
  },
} as const

/** Contractions and short spellings, by the words that they stand for. */
export const contractions: Readonly<Record<string, string>> = {
  "what's": 'what is',
  whats: 'what is',
  "how's": 'how is',
  hows: 'how is',
  "where's": 'where is',
  wheres: 'where is',
  "who's": 'who is',
  "when's": 'when is',
  "it's": 'it is',
  "that's": 'that is',
  "there's": 'there is',
  "i'm": 'i am',
  im: 'i am',
  "i've": 'i have',
  ive: 'i have',
  "i'd": 'i would',
  "i'll": 'i will',
  "we're": 'we are',
  "you're": 'you are',
  "they're": 'they are',
  "let's": 'lets',
  "don't": 'do not',
  dont: 'do not',
  "can't": 'cannot',
  cant: 'cannot',
  "won't": 'will not',
  wont: 'will not',
  "isn't": 'is not',
  isnt: 'is not',
  "aren't": 'are not',
  "doesn't": 'does not',
  doesnt: 'does not',
  "didn't": 'did not',
  didnt: 'did not',
  "shouldn't": 'should not',
  "wouldn't": 'would not',
  "couldn't": 'could not',
  "haven't": 'have not',
  "hasn't": 'has not',
  "mustn't": 'must not',
  u: 'you',
  ur: 'your',
  gimme: 'give me',
  pls: 'please',
  plz: 'please',
  thx: 'thanks',
  wat: 'what',
  wht: 'what',
  "he's": 'he is',
  "she's": 'she is',
  "we'll": 'we will',
  "wasn't": 'was not',
  "weren't": 'were not',
  "could've": 'could have',
  "would've": 'would have',
  "should've": 'should have',
  "who'd": 'who would',
}

export const actions: ReadonlySet<string> = new Set(
  Object.keys(verbs).filter((concept) => concept !== 'GIVE'),
)

/** Phrases that imply another concept. */
const implied: Record<string, string> = {
  PERP: `${products.PERP}|${products.PERPFROM}`,
  EARN: `${products.EARN}|${products.EARNFROM}`,
  FROM: `${directions.FROM}|${products.PERPFROM}|${products.EARNFROM}`,
  PRICE: `${markets.PRICE}|in dollars|in usd|in us dollars|quote me|quote|price me|price quote`,
  LIMIT: `${portfolio.LIMIT}`,
  BUY: `${verbs.BUY}|limit buy|buy limit`,
  SELL: `${verbs.SELL}|limit sell|sell limit`,
  LONG: `${verbs.LONG}|limit long`,
  SHORT: `${verbs.SHORT}|limit short`,
  SUPPOSE: `${moods.SUPPOSE}`,
}

export const concepts: Readonly<Record<string, string>> = {
  ...verbs,
  ...inflected,
  ...markets,
  ...indicatorWords,
  ...portfolio,
  ...products,
  ...account,
  ...refused,
  ...talk,
  ...directions,
  ...periods,
  ...moods,
  ...implied,
}
