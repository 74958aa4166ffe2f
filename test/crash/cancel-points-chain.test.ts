/** Cancels against a stopped instance: tasks whose effects are on a chain. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { http } from '../harness/gateway.ts'
import { type CancelCase, type CancelContext, stopPoints } from './stop-points.ts'
import { recordOf } from './venue-record.ts'

const vaultEffects = async ({ app, customer }: CancelContext, name: string): Promise<number> => {
  const { body } = await http<{ effects: { type?: string; event?: string }[] }>(
    `${app.control}/effects?contract=vault&owner=${customer.address}`,
  )
  return body.effects.filter(({ type, event }) => String(type ?? event).toLowerCase() === name).length
}

const deposit: CancelCase = {
  kind: 'earn_deposit',
  path: 'earn/deposit',
  prepare: async () => {},
  body: async () => ({ amount_usdc: 1 }),
  landed: (context) => vaultEffects(context, 'deposit'),
}

let positionId: unknown
const withdraw: CancelCase = {
  kind: 'earn_withdraw',
  path: 'earn/withdraw',
  async prepare({ run }) {
    const { outcome, result } = await run('earn/deposit', { amount_usdc: 500 })
    assert.equal(outcome, 'executed')
    positionId = result?.position_id
  },
  body: async () => ({ position_id: positionId, amount_usdc: '1' }),
  landed: (context) => vaultEffects(context, 'withdraw'),
}

const fund: CancelCase = {
  kind: 'perp_fund',
  path: 'perp/fund',
  async prepare({ run }) {
    // The first one funds the set-up.
    assert.equal((await run('perp/fund', { amount_usd: '6' })).outcome, 'executed')
  },
  body: async () => ({ amount_usd: '6' }),
  /** The venue records a transfer shortly after the chain has it; an executed task waits for that. */
  landed: async ({ venue, customer }) =>
    (await recordOf(venue, customer)).ledger.filter(({ delta }) => delta.type === 'deposit').length,
}

/** Between its legs a cancel is refused: the swap was sent. */
const fundFromBase: CancelCase = {
  ...fund,
  body: async () => ({ amount: '20000000', source_chain_id: '8453' }),
}

test('a cancel that arrives while an instance is stopped is rejected or moves nothing, on a chain', async (t) => {
  const points = await stopPoints()
  await points.raceAll([deposit, withdraw, fund, fundFromBase], (line) => t.diagnostic(line))
})
