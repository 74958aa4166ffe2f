/** Nouns: markets, holdings, products, and what is not offered. */

export const markets = {
  EXTREME: 'high of|low of|highest price|lowest price|the high|the low|high|low|peak|bottom|highest|lowest',
  MINSIZE: 'minimum order|smallest order|min order|minimum size|min size|tick size|smallest trade',
  BOOK: 'order book|orderbook|bid ask|bid and ask|bids and asks|bid ask spread|spread|market depth|depth',
  PRICE:
    'price|prices|priced|quote for|worth|value|cost|costs|rate of|trading at|trade at|going for|trades at|valued|where is|how much is|how much for|how much are|spot price|mark price|current price|market price|exchange rate|market value|is at|are at|sitting at|px|quotes|mark|marks|trading for|how many dollars|how many usd|ratio|market at',
  CHANGE:
    'up or down|moved|move today|moving|change|changed|changing|perform|performed|performing|performance|doing|do today|gone up|gone down|go up|go down|risen|rising|fallen|falling|pump|pumping|pumped|dumping|up today|down today|gained|lost today|do this|do in|do over|do during|do last|do lately|do since|move|moves|up this|down this',
  COMPARE:
    'compare|compared|comparison|versus|vs|against|better|stack up|stacks up|outperform|outperformed|outperforming|relative to|side by side|stronger|weaker|which did better',
  MARKET:
    'market|markets|coins|coin list|crypto|everything|tickers|movers|perps list|tokens|pairs|universe|perpetuals|perps|spot pairs|perp markets|perps markets',
  OVERVIEW:
    'overview|summary|summarise|summarize|snapshot|recap|market update|state of the market|how is the market|how are the markets|market doing|markets doing|market today|markets today|market look|markets look|market conditions|list|how are markets|top|biggest|largest|highest|best|worst|lowest|most|ranking|rank',
  GAINERS:
    'gainers|gainer|winners|top performers|best performing|best performers|biggest winners|rallied|up the most|gained most|gained the most|hottest|trending|pumping|movers|top movers|biggest movers|strongest|green|pumped the most|pumped most|went up most',
  LOSERS:
    'losers|loser|worst performing|worst performers|down the most|lost the most|lost most|biggest drops|weakest|bleeding|red|dropped the most|fell the most|went down most',
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
    'explain|meaning|mean|means|define|definition|difference between|how does|how do|how can i|how can we|how to|how do i|how do you|tutorial|guide|teach me|what is a|what is an|walk me through|steps to|help me understand|learn about|what is the difference|how would i|how should i|how is a|works|work',
}

export const indicatorWords = {
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

export const portfolio = {
  FILLWORD: 'fills|fill history|latest fills|executions|my fills',
  PAID: 'paid|have paid|i paid|did i pay|paid so far|spent on',
  HELDFACT:
    'entry price|entry|leverage am i using|leverage do i use|margin is used|margin used|used margin|margin am i using|how big|size of my|am i long|am i short|long or short',
  EXPOSURE: 'exposure|exposed',
  TRANSIT:
    'on the way|in transit|in flight|under way|underway|pending transfers|pending transfer|on its way|not arrived|incoming',
  STABLES: 'stablecoins|stablecoin|stables',
  BYASSET:
    'by coin|by asset|by token|per coin|per asset|per token|each coin|each asset|each token|between assets|between coins|across assets|asset by asset|coin by coin|allocation|split|break down|breakdown|composition|diversified|percentage of|share of|biggest holding|largest holding|top holdings',
  BYCHAIN:
    'by chain|per chain|by network|per network|each chain|each network|across chains|on which chain|which chain|which network|split by chain|between chains|chain by chain',
  SUMWORD: 'sum|total|in total|altogether|all together|combined|overall|grand total',
  HAVE: 'how much is in|how much is on|what is on my|i have|do i still have|do i still own|do i have|i own|do i own|i hold|do i hold|i got|have i got|i have left|do we have|holdings|holding|balance|balances|my tokens|my coins|my bag|my bags|my stack|in my wallet|in my wallets|my wallet|my wallets|my money|my funds|my assets|am i holding|i still have|left over|have left|what is in|my cash|own|hold|have i got on|i got on|got at|have got|my stuff|spot balances|spot balance|what have i got|biggest holding|largest holding|top holdings',
  OWNED: 'do i have|do i own|everything i own|everything i have|options do i have',
  PORTFOLIO:
    'portfolio|net worth|total balance|everything i own|everything i have|account value|total value|total worth|my account worth|all my money|all my assets|how rich|total holdings|overall balance|i worth|whole account|account worth|across everything',
  PNL: 'pnl|p l|p and l|profit|profits|profit and loss|unrealized|unrealised|realized|realised|gains|losses|making money|losing money|lose money|lost money|made money|make money|in profit|in the green|in the red|in loss|am i up|am i down|up on|down on|breakeven|break even|return on|returns on|roi|gain on|loss on|winning|losing|entry price|cost basis|average entry|average cost|i up|i down|have i made|have i lost|i make|i lose|did i make|did i lose|earnings on my trades|green|profitable|realized pnl|realised pnl|average buy price|average price|buy price|pay for it|did i pay for',
  HISTORY:
    'history|transactions|transaction|past trades|recent trades|last trades|my trades|trades|activity|fills|fill history|executed|what did i|did i buy|did i sell|did i trade|did i swap|did i bridge|what have i|have i traded|have i bought|have i sold|did i do|statement|log of|past orders|order history|did i deposit|did i withdraw|i did|previous trades|last trade|latest fills|latest trades|my swaps|trades did i do|when did i',
  ORDERS:
    'orders|order|open orders|pending orders|active orders|resting orders|outstanding orders|outstanding|resting|pending|waiting|what is waiting|still open|still waiting|triggers|conditional orders|unfilled|working orders|orders open|my bid|my offer|my ask|bids|offers',
  LIMIT:
    'limit order|limit orders|limit|limits orders|buy limit|sell limit|limit buy|limit sell|limit long|limit short',
  ADDRESS:
    'address|addresses|deposit address|receive|receiving address|where can i deposit|where do i send|where do i deposit|how do i deposit|how can i deposit|fund my account|fund my wallet|top up my wallet|add funds to my wallet|my wallet address|public key|where should i send|deposit to my wallet|how do i fund|how do i add money|wallet addresses|where to send|where to deposit|pay in|qr code|send funds to|where can i send|send to me',
  POSITION: 'position|positions|open trades|my trade|exposure on|open positions|trade on perps',
  LIQUIDATION:
    'liquidation|liquidated|liquidation price|liq|liq price|liquidate|get liquidated|margin call|getting liquidated|rekt|margin used|margin ratio|from liquidation|liquidation level|close am i to liquidation|be liquidated|to liquidation',
}

export const products = {
  PERP: 'perp|perps|perpetual|perpetuals|futures|future|perp account|perp side|perps account|perpetual trading|futures account|futures trading|perp trading|derivatives|margin trading|trading account|hyperliquid account|margin account|on margin|perpetual futures|the exchange|exchange account|to hyperliquid|into hyperliquid|at hyperliquid|on hyperliquid|at the exchange|to the exchange|perp markets|perps markets',
  SPOT: 'spot|spot market|spot markets|spot side|on spot|spot account|spot venue|venue spot|spot exchange|spot balances|spot balance|the spot exchange|spot pairs|spot coins|at spot',
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
    'from perps|from the perp account|out of perps|from my perp account|off perps|out of the perp account|from the perp side|from my perps|from perp|out of my perp account|off the perp side|out of the perps|from the perps|from hyperliquid|out of hyperliquid|from futures|out of futures|off the perp account|from the futures account|from my futures account|from the trading account|from my margin account|from margin|off the exchange|from the exchange|out of the exchange|off hyperliquid|off the venue|from the venue|out of the venue',
  EARNFROM:
    'out of earn|out of the vault|from the vault|from earn|from my vault|out of my vault|from savings|out of savings|from my savings|out of my savings|from the earn vault|out of the earn vault|from the yield vault|out of the yield vault|off the vault|out of yield|from yield',
  PUTTOWORK:
    'put to work|to work|earn yield|earning yield|earn interest|earning interest|earn something|for yield|generate yield|to earn',
  GETS: 'can i buy with|could i buy with|can i buy for|could i buy for|would i get|do i get|will i get|can i get|could i get|would get|end up with|i receive|would that be|would it be|does that get me|get me in|would buy|can you get|would that get|will that get|would be|bring me|i would get|do you get|get me for|get for|would bring|would it bring|would come out|come out as|net me|would fetch|fetch|would buy me|would that buy|get in',
  QUOTEWORD:
    'quote|price me|quote me|swap quote|a quote|quote for|a quote for|get a quote|preview|dry run|simulate|indicative price|price quote',
  COSTME:
    'cost to buy|cost me to buy|would it cost|would cost|cost to get|cost to swap|cost to sell|how much to buy|fee to swap|cost of swapping',
  ADDS: 'add',
  TRADEWORD: 'trade|trades',
  EARN: 'earn|vault|yield|savings|earn vault|yield vault|the vault|interest|earn product|earn position|earn positions|savings account|earn account|passive income|lending pool|yield product|earn program',
  APY: 'apy|apr|interest rate|yield rate|how much yield|what yield|how much interest|current apy|vault pay|vault pays|vault paying|vault give|vault gives|earn pay|earn rate|interest pay|rate on|rates on|yield now|how much can i earn|what can i earn|vault yield|pays on|yields|return of the vault|how much does earn',
  EARNED:
    'how much yield so far|how much yield have i earned|yield have i earned|how much yield did i earn|how much interest have i earned|interest have i earned|have i earned|did i earn|earned|earnings|yield so far|made in the vault|my deposit|my deposits|my vault|my earn|earn positions|earn position|vault position|vault balance|interest so far|accrued|my yield|in the vault|in earn|deposited',
  TOKENWORD: 'token|tokens|coin|coins|contract|mint|memecoin|shitcoin',
  SCAM: 'scam|scams|honeypot|rug|rugpull|rug pull|rugged|safe|safety|secure to buy|security|security check|security report|legit|legitimate|trustworthy|dangerous|malicious|tax|taxes|sell tax|buy tax|audit|audited|can i sell it|freeze authority|mint authority|freezable|be frozen|blacklist|let me sell|sellable|vet|risk check|fake|sus|suspicious|sketchy|trust|rug check|trusted|trustable|honeypots|a honeypot|a scam',
  CHAINWORD: 'chain|chains|network|networks|blockchain|blockchains|l2|l2s|rollup|rollups',
  SUPPORTED:
    'support|supported|supports|available|do you have|do you offer|do you list|listed|can i trade|can i buy|can i get|can i use|can i swap|can i long|can i short|can i bridge|tradable|tradeable|offered|which chain is|is on|served|do you know|serve|what chain is|which network is|on which chain|works with|cover',
  GAS: 'gas|gas fee|gas fees|gas price|gas prices|gas cost|gas costs|network fee|network fees|transaction fee|transaction fees|gwei|gasless|pay for gas|pay gas|need gas|fees|trading fees|fees paid',
}

export const account = {
  PLANS: 'plans|subscription|subscriptions|subscription plans|subscription plan',
  AGENTS: 'agents|linked agents|linked apps|apps',
  CREDITS: 'credits|credit|credit balance|my credits|chat credits|on credits',
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
  TASK: 'task|tasks|jobs|job|operation|operations|operation status|background tasks|transaction fail|transaction failed|failed transactions|failed transaction|swap fail|order fail',
  WENT: 'go through|went through|gone through|succeed|succeeded|success|complete yet|completed yet|finished|done yet|is it done|executed yet|what happened to|status of|progress|still running|confirmed yet|land|landed|arrived|arrive|settled|filled yet|stuck|work out|how far|failed yet|worked|processed|get filled|got filled|through yet|update on my|happened with my|did that work',
  FAILED:
    'failed|failing|errors|went wrong|transaction fail|transaction failed|swap fail|order fail|failed transaction|failed transactions',
  RUNNING:
    'running|in progress|in flight|unfinished|ongoing|active tasks|currently running|running right now|running now|runs right now|run right now',
  COMPLETED: 'completed tasks|finished tasks|completed',
  ACCOUNT:
    'who am i|my account|my profile|my user|account details|account info|account information|my plan|logged in as|my scopes|signed in as|my agent id|my user id|profile|account id|my permissions',
  HEALTH:
    'healthy|health|up and running|systems up|system status|service status|outage|down right now|operational|systems|are you up|are you down|is it down|status of the service|is the service|everything working|online|anything broken|service down|gateway down|service up',
  NOTIFICATION:
    'notifications|notification|alerts|what is new|anything new|events|recent events|did i miss|updates for me|inbox|happened to my account|what did i miss',
}

/** Prediction markets. The words for them say what is meant, and the others of a message are searched for. */
export const predictions = {
  PREDCASH:
    'polymarket balance|prediction balance|polymarket cash|prediction cash|cash at polymarket|balance at polymarket',
  SHARES: 'shares',
  PREDACCOUNT: 'polymarket account|prediction account|my polymarket|into polymarket|to polymarket',
  PREDMKT:
    'polymarket|prediction market|prediction markets|odds|bet|bets|betting|wager|odds of|election|yes shares|no shares|rate cut|who wins|my bets|kalshi|event contracts|gamble|outcome shares|winnings|my winnings|polymarket account|prediction account|chance|chances|probability|likelihood|favoured|favored|favourite|prediction trading|predictions|can i bet on|bet on|according to the market|resolve|resolves|at polymarket|on polymarket|into polymarket|prediction|on yes|on no|of yes|of no|yes on|no on|my polymarket|polymarket balance|prediction balance|to polymarket',
  PREDHELD:
    'my bets|my wagers|my prediction positions|my polymarket positions|my outcome shares|my yes shares|my no shares|bets do i have|my predictions|my bet|my shares|win anything|won anything|bets doing|predictions doing|polymarket balance|prediction balance',
}

export const refused = {
  SCHEDULES:
    'schedules|my schedule|my dca|automations|automation|next schedule|scheduled orders|scheduled runs|my bots|my bot|my strategies',
  NEWS: 'news|headlines|headline|happened in crypto|announcement|announcements|rumour|rumor|rumours|rumors|tweets|twitter sentiment|articles|press|latest on|why is|why did|why are|sentiment on twitter|breaking|media',
  FORECAST:
    'will|predict|forecast|going to hit|going to reach|gonna hit|where will|price prediction|next year|in five years|by the end of the year|by year end|going to be|will be worth|going to moon|gonna moon|how high|how low|moon|crystal ball|going to go|going to pump|going to dump|going to crash|future price|100x|eoy',
  SCHEDULE:
    'schedule|scheduled|dca|dollar cost average|recurring|automate|automatically|strategy|strategies|bot|every week|weekly|every month|monthly|every hour|hourly|every morning|every day|each day at|each week|each month|each morning|every few|every other|on autopilot|auto buy|auto invest|regularly|grid bot|rebalance|copy trade|copy trading|every weekday|seconds|second',
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
