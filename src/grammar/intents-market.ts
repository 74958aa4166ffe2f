import * as lines from './answer-lines.ts'
import * as rows from './answer-row-filters.ts'
import { any } from './feature-rules.ts'
import { framesOf, type PlanStep, type SlotRule } from './intent-frame.ts'
import { formula, onlyIf, slot, step } from './step-builders.ts'
import * as steps from './steps-of-several-intents.ts'

const markets: readonly PlanStep[] = [
  onlyIf('some_perp', steps.perpMarket(formula('search_text'))),
  onlyIf('some_spot_alone', steps.spotMarket(formula('search_text'))),
  onlyIf('some_unlisted', steps.holdings),
]
const asset: SlotRule = { name: 'assets', question: 'Which asset do you mean?' }

export const marketFrames = framesOf({ domain: 'market', effect: 'read' }, [
  {
    intent: 'price',
    summary: 'The price of assets, and how it moved since the day before',
    when: [
      any('PRICE CHANGE @bare UP+QUESTION DOWN+QUESTION ABOVE+QUESTION BELOW+QUESTION FROM+QUESTION+@number'),
      any('@asset'),
    ],
    cues: { PRICE: 2, '@bare': 1 },
    not: any(
      'FUNDING @window EXTREME INTEREST VOLUME MINSIZE BOOK HELDFACT CHART INDICATOR @indicator PNL HAVE PORTFOLIO SCAM APY CREDITS CHATPRICE POSITION GAS SHOULD ANALYSIS RESEARCH FORECAST NEWS HISTORY COMPARE+@assets CHAINWORD LIQUIDATION EXPLAIN SUPPORTED PREDMKT',
    ),
    readers: ['assets', 'period', 'spot_said'],
    slots: ['assets', 'period', 'venue'],
    required: [asset],
    plan: markets,
    window: 'day',
    answer: [lines.perpPrice, lines.spotPrice, lines.heldPrice],
    examples: ['eth in dollars please', 'price of btc and sol', 'how is hype doing today'],
  },
  {
    intent: 'compare',
    summary: 'Two or more assets side by side',
    when: [any('COMPARE'), any('@assets')],
    cues: { COMPARE: 3 },
    not: any('SHOULD SWAP BUY SELL @window NFT'),
    readers: ['assets', 'period'],
    required: [asset],
    window: 'day',
    plan: markets,
    answer: [lines.perpPrice, lines.spotPrice, lines.heldPrice],
    examples: ['compare eth with sol', 'btc vs hype today'],
  },
  {
    intent: 'market_overview',
    summary: 'The markets by what moved, what is traded and what pays funding',
    when: [any('MARKET OVERVIEW GAINERS LOSERS VOLUME INTEREST FUNDING SPOT')],
    cues: { MARKET: 1, OVERVIEW: 1, GAINERS: 2, LOSERS: 2, VOLUME: 2, INTEREST: 2, SPOT: -1 },
    not: any(
      '@asset HAVE ORDERS HISTORY PNL POSITION CREDITS EARN APY SCAM LIMITS PORTFOLIO TASK ADDRESS CHAINWORD EXPLAIN NEWS SUPPORTED GAS HELP FORECAST PREDMKT SETUP SETUP_ ANALYSIS RESEARCH LIQUIDATION MINE PREDHELD BOOK OPEN',
    ),
    window: 'day',
    readers: ['sort', 'venue', 'count', 'period'],
    plan: [onlyIf('not_spot_venue', steps.perpMarkets), onlyIf('spot_venue', steps.spotMarkets)],
    answer: [
      {
        rows: '/markets',
        pick: rows.traded,
        sort: rows.bySort,
        max: 5,
        text: '{symbol|text}: {mark_price|price}[, {change(mark_price,prev_day_price)|fraction} against the day before], volume {volume_24h_usd|usd}, funding {funding_rate|hourly}.',
      },
      {
        step: 'spot',
        rows: '/markets',
        sort: rows.bySort,
        max: 5,
        text: '{base|text}: {price|price}, volume {volume_24h_usd|usd}.',
      },
    ],
    examples: ['which perps pay the most funding', 'top 5 gainers today', 'how is the market'],
  },
  {
    intent: 'funding',
    summary: 'The hourly funding of perpetual markets',
    when: [any('FUNDING'), any('@asset')],
    cues: { FUNDING: 3 },
    not: any('PNL EXPLAIN PAID'),
    readers: ['assets'],
    required: [asset],
    plan: [steps.perpMarket(formula('search_text'))],
    place: 'perp',
    answer: [
      {
        rows: '/markets',
        pick: rows.named,
        text: '{symbol|text}: funding {funding_rate|hourly} at {mark_price|price}.',
        none: 'The venue lists no such perpetual market.',
      },
    ],
    examples: ['what is the funding on eth', 'funding rate for btc and sol'],
  },
  {
    intent: 'analysis',
    effect: 'none',
    route: 'MarketAnalyzerAgent',
    summary: 'Charts, indicators, levels and longer periods, computed from candles',
    when: [any('ANALYSIS CHART INDICATOR @indicator SHOULD SHORT_+ANALYSIS'), any('@asset')],
    cues: { ANALYSIS: 2, CHART: 2, INDICATOR: 1, '@indicator': 3, SHOULD: 3, '@longspan': 1 },
    window: 'any',
    not: any('SCAM RESEARCH PNL EXPLAIN FORECAST APY'),
    readers: ['timeframe', 'indicators', 'assets', 'period'],
    slots: ['assets', 'timeframe', 'indicators', 'period'],
    required: [asset],
    examples: ['rsi and macd for sol, daily', 'draw hype on the 4h', 'should i get into eth now'],
  },
])

export const researchFrames = framesOf({ domain: 'research', effect: 'none' }, [
  {
    intent: 'research',
    route: 'ProDeepResearchAgent',
    summary: 'A written report with sources',
    when: [any('RESEARCH'), any('@asset')],
    cues: { RESEARCH: 4 },
    not: any('SCAM CREDITS CHATPRICE'),
    readers: ['assets'],
    required: [asset],
    examples: ['write me a full report on hype', 'research aero for me'],
  },
])

export const tokenFrames = framesOf({ domain: 'token', effect: 'read' }, [
  {
    intent: 'security',
    summary: 'Whether a token can be sold again, what it taxes, and who controls it',
    when: [any('SCAM'), any('@asset @address TOKENWORD IT')],
    cues: { SCAM: 4, '@address': 2 },
    not: any('PROTECT+@price LIMITS'),
    readers: ['address_token', 'token', 'chain'],
    slots: ['token', 'chain'],
    required: [
      {
        name: 'token',
        question: 'Which token do you mean? Give its address or symbol, such as "is usdc safe".',
      },
    ],
    plan: [step('security', 'security_check', { tokens: formula('security_tokens') })],
    answer: [
      {
        rows: '/results',
        text: '[{token(chain_id,token_address)|text} ]{token_address|text} on chain {chain_id|text}: {status|text}, risk {risk_level|words}[, buy tax {buy_tax|fraction}][, sell tax {sell_tax|fraction}][. {reasons/0/message|text}][ (by {provider|text})].',
      },
    ],
    examples: ['is usdc safe', 'would 0x6982508145454ce325ddbe47a25d4ec3d2311933 let me sell again'],
  },
  {
    intent: 'supported',
    summary: 'Where an asset can be traded',
    when: [any('SUPPORTED'), any('@asset')],
    cues: { SUPPORTED: 2 },
    not: any('SCAM PRICE GAS HAVE PNL CHANGE LONG_ HISTORY'),
    readers: ['asset', 'chain'],
    plan: [steps.chains, steps.perpMarket(slot('asset')), steps.spotMarket(slot('asset'))],
    answer: [
      {
        rows: '/chains',
        pick: rows.ofToken,
        text: 'A token on {display_name|text} (chain {chain_id|text}), status {status|text}.',
      },
      {
        step: 'perp',
        rows: '/markets',
        pick: rows.named,
        text: '{symbol|text} is a perpetual market, leverage up to {max_leverage|count}.',
      },
      { step: 'spot', rows: '/markets', pick: rows.named, text: '{base|text} is a spot market.' },
    ],
    examples: ['which chain is usdc on', 'can i trade doge here'],
  },
  {
    intent: 'chains',
    summary: 'The chains that are served',
    when: [any('CHAINWORD')],
    cues: { SUPPORTED: 2, CHAINWORD: 1 },
    not: any('@asset GAS HAVE ADDRESS'),
    plan: [steps.chains],
    answer: [{ rows: '/chains', text: '{display_name|text} (chain {chain_id|text}), {status|text}.' }],
    examples: ['which networks do you support', 'list the chains'],
  },
  {
    intent: 'gas',
    summary: 'What transactions cost: nothing, where the chain is gasless',
    when: [any('GAS')],
    cues: { GAS: 3 },
    not: any('FUNDING CHATPRICE EARN'),
    readers: ['asset', 'chain'],
    slots: ['chain'],
    plan: [steps.chains],
    answer: [
      {
        rows: '/chains',
        pick: rows.onChain,
        text: '{display_name|text}: does the service pay for gas: {gasless|text}; native coin {native_token|text}.',
      },
    ],
    examples: ['do i need eth for gas', 'gas fees on polygon'],
  },
])
