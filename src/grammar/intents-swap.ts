import * as lines from './answer-lines.ts'
import { any, list } from './feature-rules.ts'
import { framesOf, type PlanStep } from './intent-frame.ts'
import * as rules from './slots-of-several-intents.ts'
import { formula, onlyIf, slot, step, value } from './step-builders.ts'
import * as steps from './steps-of-several-intents.ts'

const swapFields = {
  chain_id_in: formula('chain_in'),
  chain_id_out: formula('chain_out'),
  token_in: formula('token_in'),
  token_out: formula('token_out'),
  amount: formula('amount_in_units'),
  amount_usd: formula('amount_in_usd'),
  slippage_bps: formula('slippage_bps'),
  stop_loss: formula('stop_leg'),
  take_profit: formula('target_leg'),
}
const held = onlyIf('needs_holdings', steps.holdings)
const priceOut: readonly PlanStep[] = [
  onlyIf('needs_perp_price', steps.perpMarket(slot('asset_out'))),
  onlyIf('needs_spot_price', steps.spotMarket(slot('asset_out'))),
]
const preview = step('preview', 'swap_execute', { ...swapFields, dryrun: value(true) })
const swap = step('swap', 'swap_execute', { ...swapFields, quote_id: formula('quote_id') })

export const swapFrames = framesOf({ domain: 'swap', effect: 'trade', place: 'token' }, [
  {
    intent: 'quote',
    effect: 'quote',
    summary: 'What a swap would bring, without doing it',
    when: [
      any(
        'GETS QUOTEWORD COSTME @thought+SWAP @thought+SELL @thought+BUY @thought+SWAP_ @thought+SELL_ @thought+BUY_ @asked+BUY @asked+SELL @asked+SWAP',
      ),
      any('@asset'),
      any('@amount'),
    ],
    cues: { GETS: 3, QUOTEWORD: 2, '@amount': 1, '@assets': 1 },
    not: any(
      'SHOULD EXPLAIN PNL ANALYSIS POSITION PERP SPOT CREDITS FUNDING APY PREDMKT FORECAST LEVERAGE @times TASK LIMITS @do HAVE IF+@price LONG SHORT NEWS HISTORY',
    ),
    readers: ['slippage', 'chains_same', 'pair', 'chains'],
    slots: ['asset_in', 'asset_out', 'amount', 'chain', 'chain_out', 'slippage'],
    required: [
      { name: 'asset_in', question: 'Which token would you sell?' },
      { name: 'asset_out', question: 'Into which token?' },
      rules.amount,
    ],
    plan: [held, ...priceOut, preview],
    executedBy: ({ asset_in, asset_out }) => (asset_in === asset_out ? 'bridge' : 'swap'),
    answer: [lines.quote],
    examples: [
      'what would 300 usdc get me in eth on base',
      'quote 2 sol to usdc',
      'what if i sold half my eth on base',
    ],
  },
  {
    intent: 'swap',
    summary: 'Buys, sells or converts tokens on chains',
    when: [any('BUY SELL SWAP GIVE+@amount+@asset PUT+@amount+@asset')],
    head: list('BUY SELL SWAP GIVE PUT'),
    cues: { BUY: 1, SELL: 1, SWAP: 1, '@assets': 1, '@amount': 1 },
    not: any(
      '@thought POSITION+@perpfirst LONG SHORT @times SPOT PERP EARN CREDITS ^SET+STOP ^PUT+STOP ^SET+TARGET ^PUT+TARGET LIMIT @price IF PRICE+GIVE LIMITS DAILY PERTX FIAT CHART+GIVE RESEARCH ANALYSIS QUOTEWORD TASK SHOW FREEZE PREDMKT ADDRESS',
    ),
    readers: ['slippage', 'legs', 'chains_same', 'pair', 'chains'],
    slots: ['asset_in', 'asset_out', 'amount', 'chain', 'chain_out', 'slippage', 'stop', 'target'],
    required: [
      { name: 'asset_in', question: 'What do you want to sell or pay with?' },
      { name: 'asset_out', question: 'What do you want to get?' },
      rules.amount,
    ],
    plan: [held, ...priceOut, preview, swap],
    atPerp: ({ amount }, { symbol, slot }) =>
      slot === 'asset_out'
        ? {
            label: `a long position in ${symbol}`,
            intent: 'perp_open',
            fill: { asset: symbol, side: 'long', ...(amount !== undefined && { amount }) },
          }
        : undefined,
    answer: [lines.quote, lines.task('swap')],
    examples: ['grab 75 dollars of aero', 'sell a third of my eth on base', 'turn 0.4 eth into usdc on base'],
  },
  {
    intent: 'bridge',
    summary: 'Moves a token from one chain to another, within the own wallets',
    when: [any('BRIDGE MOVE SWAP PUT'), any('@chain BRIDGE')],
    head: list('BRIDGE MOVE SWAP PUT'),
    cues: { BRIDGE: 4, '@chains': 3, MOVE: 1, '@chainto': 3 },
    not: any('@times PERP EARN CREDITS OTHERPERSON @address SPOT STOP TARGET @assets'),
    readers: ['slippage', 'chains', 'bridge_amount'],
    slots: ['asset', 'amount', 'chain', 'chain_out', 'slippage'],
    required: [
      { name: 'asset', question: 'Which token do you want to move?' },
      rules.amount,
      { name: 'chain_out', question: 'To which chain?', choices: 'chains' },
    ],
    plan: [held, preview, swap],
    answer: [lines.quote, lines.task('swap')],
    examples: ['move 150 usdc from base over to solana', 'bridge half my eth to arbitrum'],
  },
])
