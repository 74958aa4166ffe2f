import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { PredmktDeps } from './deps.ts'
import { divided, payoutOf, redeemedIn, type Target } from './redemption-proof.ts'

type Log = { sent?: string; paid?: bigint; units?: bigint }
const deps = {
  venue: {
    money: {
      cashToken: '0xc',
      sharesSent: (_wallet: string, [log]: Log[]) =>
        log?.sent ? [{ outcomeId: log.sent, sizeUnits: log.units }] : [],
    },
  },
  chain: {
    transfers: ({ logs }: { logs: Log[] }) =>
      logs.flatMap(({ paid }) =>
        paid === undefined ? [] : [{ token: '0xC', to: '0xA', amountUnits: paid }],
      ),
  },
} as unknown as PredmktDeps
const wallet = { kind: 'deposit_wallet', owner: '0x1', wallet: '0xa' } as const
const targetOf = (id: string, [yes, no]: [number, number]): Target => ({
  market_id: id,
  title: id,
  shares: [
    { outcome_id: `${id}-yes`, units: '0', payout: '0', per_share: String(yes) },
    { outcome_id: `${id}-no`, units: '0', payout: '0', per_share: String(no) },
  ],
})
const redeemed = (targets: Target[], logs: Log[]) =>
  redeemedIn(deps, { targets, wallet }, { success: true, logs } as unknown as Receipt).map((target) => [
    target.market_id,
    payoutOf(target),
  ])

test('what the chain has paid counts, and not what the venue says', () => {
  const logs = [
    { sent: 'a-yes', units: 10n },
    { paid: 10n },
    { sent: 'b-yes', units: 20n },
    { sent: 'c-yes', units: 30n },
    { paid: 30n },
  ]
  // The venue still lists the default of the first market, and an early result of the others.
  const targets = [
    targetOf('a', [500_000, 500_000]),
    targetOf('b', [0, 1_000_000]),
    targetOf('c', [1_000_000, 0]),
    targetOf('d', [1_000_000, 0]),
  ]
  assert.deepEqual(redeemed(targets, logs), [
    ['a', 10n],
    ['b', 0n],
    ['c', 30n],
  ])
  assert.deepEqual(redeemed([targetOf('a', [1_000_000, 0])], [{ sent: 'a-yes', units: 10n }]), [['a', 0n]])
})

test('a payment is divided to the unit', () => {
  const sent = [3n, 3n, 1n].map((sizeUnits, index) => ({ outcomeId: String(index), sizeUnits }))
  const payouts = (paid: bigint, perShare: bigint) =>
    divided(paid, sent, (id) => (id === '2' ? 0n : perShare)).map(({ payoutUnits }) => payoutUnits)
  assert.deepEqual(payouts(5n, 1n), [2n, 3n, 0n])
  assert.deepEqual(payouts(7n, 0n), [3n, 3n, 1n])
})
