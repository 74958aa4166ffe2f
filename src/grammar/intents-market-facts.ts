import * as rows from './answer-row-filters.ts'
import { any } from './feature-rules.ts'
import { framesOf, type SlotRule } from './intent-frame.ts'
import { formula, onlyIf, slot, step } from './step-builders.ts'
import * as steps from './steps-of-several-intents.ts'

const asset: SlotRule = { name: 'assets', question: 'Which asset do you mean?' }
const candles = step(
  'candles',
  'market_candles',
  { asset: formula('row_asset'), timeframe: formula('candle_timeframe'), count: formula('candle_count') },
  { each: 'asked_perps' },
)
export const marketFactFrames = framesOf({ domain: 'market', effect: 'read' }, [
  {
    intent: 'price_history',
    summary: 'How prices moved over a time, with high and low',
    when: [
      any('@window EXTREME'),
      any('@asset'),
      any('PRICE CHANGE COMPARE EXTREME @bare QUESTION UP DOWN @window+@asked'),
    ],
    cues: { '@window': 3, EXTREME: 3, CHANGE: 1, COMPARE: 1, PRICE: 1 },
    not: any(
      'FUNDING CHART INDICATOR @indicator ANALYSIS SCAM APY CREDITS POSITION SHOULD RESEARCH FORECAST NEWS HISTORY PREDMKT PREDHELD PNL ORDERS HAVE PORTFOLIO LIQUIDATION STOP TARGET HELDFACT',
    ),
    readers: ['assets', 'period'],
    required: [asset],
    place: 'perp',
    window: 'any',
    plan: [candles],
    answer: [
      {
        step: 'candles',
        total: '/candles',
        pick: rows.inWindow,
        isOfOne: true,
        text: '{/asset|text} over {said(period)|text}: {first(open)|price} to {last(close)|price}, {move(open,close)|fraction}; high {max(high)|price}, low {min(low)|price}; candles from {first(start)|time}.',
        none: 'The venue has no prices of that time.',
      },
    ],
    examples: ['how did eth move this week', 'high and low of btc over the last month'],
  },
  {
    intent: 'amount_worth',
    summary: 'What an amount of an asset is worth now, and how much a sum of dollars buys',
    when: [any('@worth'), any('@perpasset'), any('PRICE QUESTION GETS')],
    cues: { PRICE: 2, '@amount': 2, QUESTION: 1 },
    not: any(
      '@do @times ABOVE BELOW @chain @price QUOTEWORD SWAP BUY SELL LONG SHORT @window EARN DEPOSIT WITHDRAW HAVE PNL POSITION ORDERS LIMITS FUNDING SCAM APY CREDITS SHOULD PREDMKT PREDHELD FORECAST HISTORY EXPLAIN SUPPORTED HELDFACT LEVERAGE SUPPOSE COSTME @thought IF LONG_ SHORT_ BUY_ SELL_',
    ),
    readers: ['worth_amount', 'asset'],
    slots: ['asset', 'amount'],
    required: [
      { name: 'asset', question: 'Which asset?' },
      { name: 'amount', question: 'How much?' },
    ],
    plan: [steps.perpMarket(slot('asset'))],
    place: 'perp',
    answer: [
      {
        step: 'perp',
        rows: '/markets',
        pick: rows.named,
        text: '[That is {worth(mark_price)|usd} of {symbol|text} ][That buys about {bought(mark_price)|amount} {symbol|text} ]at {mark_price|price}.',
        none: 'The venue lists no such perpetual market.',
      },
    ],
    examples: ['how much is two sol in dollars'],
  },
  {
    intent: 'market_facts',
    summary: 'Leverage, smallest order, open interest and volume of a perpetual market',
    when: [
      any('LEVERAGE+QUESTION LEVERAGE+ALL LEVERAGE+SHOW INTEREST VOLUME MINSIZE @times+QUESTION'),
      any('@asset'),
    ],
    cues: { LEVERAGE: 3, INTEREST: 3, VOLUME: 3, MINSIZE: 4, '@times': 1 },
    not: any(
      'MINE POSITION HELDFACT @do @window PNL HISTORY SCAM EXPLAIN ANALYSIS CHART PREDMKT ORDERS RESEARCH @indicator FUNDING LIMITS COMPARE',
    ),
    readers: ['assets'],
    required: [asset],
    place: 'perp',
    plan: [steps.perpMarket(formula('search_text'))],
    answer: [
      {
        rows: '/markets',
        pick: rows.named,
        text: '{symbol|text}: leverage up to {max_leverage|count}, smallest order {min_order_usd|usd}, open interest {open_interest|amount} {symbol|text}, volume of the day {volume_24h_usd|usd}, price {mark_price|price}.',
        none: 'The venue lists no such perpetual market.',
      },
    ],
    examples: ['max leverage for doge', 'open interest of eth'],
  },
  {
    intent: 'order_book',
    summary: 'The best bids and asks of a perpetual market',
    when: [any('BOOK'), any('@asset')],
    cues: { BOOK: 5 },
    not: any('PREDMKT MINE EXPLAIN @do'),
    readers: ['asset'],
    required: [{ name: 'asset', question: 'Which market?' }],
    place: 'perp',
    plan: [step('book', 'market_book', { asset: slot('asset') })],
    answer: [
      {
        step: 'book',
        rows: '/bids',
        max: 3,
        text: '{/asset|text} bid {price|price}, {size|amount}.',
        none: 'There is no bid.',
      },
      {
        step: 'book',
        rows: '/asks',
        max: 3,
        text: '{/asset|text} ask {price|price}, {size|amount}.',
        none: 'There is no ask.',
      },
    ],
    examples: ['order book of eth'],
  },
  {
    intent: 'market_list',
    summary: 'The markets of the venue',
    when: [
      any(
        'MARKET+SHOW MARKET+QUESTION MARKET+SUPPORTED TOKENWORD+SUPPORTED PERP+SUPPORTED SPOT+SUPPORTED TOKENWORD+PERP TOKENWORD+SPOT',
      ),
    ],
    cues: { SUPPORTED: 3, SHOW: 4, MARKET: 1, TOKENWORD: 2 },
    not: any(
      '@asset HAVE MINE ORDERS HISTORY PNL POSITION CREDITS EARN APY SCAM LIMITS PORTFOLIO GAINERS LOSERS VOLUME INTEREST FUNDING CHANGE PREDMKT PREDHELD SETUP SETUP_ @amount EXPLAIN HELP CHAINWORD ANALYSIS NEWS FORECAST BOOK OPEN',
    ),
    readers: ['venue'],
    plan: [onlyIf('not_spot_venue', steps.perpMarkets), onlyIf('spot_venue', steps.spotMarkets)],
    answer: [
      {
        step: 'perp',
        rows: '/markets',
        pick: rows.traded,
        max: 40,
        text: '{symbol|text}: {mark_price|price}, leverage up to {max_leverage|count}.',
      },
      { step: 'spot', rows: '/markets', max: 40, text: '{base|text}: {price|price}.' },
    ],
    examples: ['list the perp markets', 'which coins can i trade on spot'],
  },
])
