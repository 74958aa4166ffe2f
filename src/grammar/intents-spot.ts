import * as lines from './answer-lines.ts'
import { any, list } from './feature-rules.ts'
import { framesOf } from './intent-frame.ts'
import * as rules from './slots-of-several-intents.ts'
import { formula, slot, step } from './step-builders.ts'
import * as steps from './steps-of-several-intents.ts'

export const spotFrames = framesOf({ domain: 'spot venue', effect: 'trade', place: 'spot' }, [
  {
    intent: 'spot_buy',
    summary: 'Buys at the spot venue with USDC',
    when: [any('BUY GIVE PUT'), any('@asset'), any('SPOT @spotonly @spotprefer')],
    head: list('BUY GIVE PUT SET OPEN'),
    cues: { SPOT: 4, BUY: 1, '@spotonly': 3, '@spotprefer': 2 },
    not: any('@times LONG SHORT PERP POSITION SELL IF STOP+SET HAVE CREDITS'),
    readers: ['slippage', 'legs', 'price', 'sized'],
    slots: ['asset', 'amount', 'price', 'stop', 'target', 'slippage'],
    required: [rules.asset, rules.amount],
    plan: [
      steps.spotMarket(slot('asset')),
      step('buy', 'spot_venue_buy', {
        asset: slot('asset'),
        size: formula('size'),
        notional_usdc: formula('notional_usd'),
        ...steps.venueOrder,
        tp_price: formula('spot_target'),
        sl_price: formula('spot_stop'),
      }),
    ],
    answer: [lines.spotPrice, lines.task('buy')],
    examples: ['spot buy 40 usdc of purr', 'buy 5 hype on spot at 35'],
  },
  {
    intent: 'spot_sell',
    summary: 'Sells at the spot venue for USDC',
    when: [any('SELL'), any('@asset'), any('SPOT @spotonly @spotprefer')],
    head: list('SELL SET PUT OPEN'),
    cues: { SPOT: 4, SELL: 1, '@spotonly': 3, '@spotprefer': 2 },
    not: any('@times LONG SHORT PERP POSITION BUY IF STOP+SET CREDITS'),
    readers: ['slippage', 'price', 'sized'],
    slots: ['asset', 'amount', 'price', 'slippage'],
    required: [rules.asset, rules.amount],
    plan: [
      steps.spotOrders,
      step('markets', 'spot_venue_markets', { search_text: slot('asset') }, { only: 'amount_is_part' }),
      step('sell', 'spot_venue_sell', {
        asset: slot('asset'),
        size: formula('spot_size'),
        notional_usdc: formula('notional_usd'),
        ...steps.venueOrder,
      }),
    ],
    answer: [lines.task('sell')],
    examples: ['sell all my spot hype', 'sell half of my purr'],
  },
  {
    intent: 'spot_protect',
    summary: 'Sell triggers on a spot holding',
    when: [any('STOP TARGET PROTECT'), any('SPOT @spotonly')],
    head: list('SET PROTECT PUT'),
    cues: { STOP: 3, TARGET: 3, SPOT: 3, '@spotonly': 3 },
    not: any('@times LONG SHORT POSITION PERP CANCEL'),
    readers: ['legs', 'asset'],
    slots: ['asset', 'stop', 'target'],
    required: [{ name: 'asset', question: 'For which asset?' }, rules.legs],
    plan: [
      steps.spotOrders,
      step('protect', 'spot_venue_tp_sl', {
        asset: slot('asset'),
        tp_price: formula('spot_target'),
        sl_price: formula('spot_stop'),
      }),
    ],
    answer: [lines.task('protect')],
    examples: ['put a stop at 30 and a target at 45 on my spot hype'],
  },
])
