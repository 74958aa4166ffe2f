import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SwapTaskData } from '#features/swap/task-data.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { StepResult, TaskView, Tx } from '#kernel/task/task.ts'
import { secondLegMs } from './swap-leg.ts'
import { type SwapAfterData, type SwapAfterDeps, swapAfterWithdrawal } from './withdraw-swap.ts'

const now = new Date(1_700_000_000_000)
const { signal } = new AbortController()
const context = { now, signal, stopping: signal }
const usdc = { symbol: 'USDC', name: 'USDC', decimals: 6, address: '0xusdc' }
const swap = {
  origin: { chain_id: '42161', token: usdc, is_native: false, account: '0xacc' },
  destination: { chain_id: '137', token: { ...usdc, address: '0xpoly' }, is_native: false, account: '0xacc' },
  amount_in: '49000000',
  amount_out_min: '47000000',
  deposit_tx: '0xd',
  quote: { fees_usd: '0.25', amount_out: '48000000', amount_out_usd: '48' },
} as unknown as SwapTaskData

const taskOf = (data: Partial<SwapAfterData> = {}, ageMs = 0) =>
  ({
    id: 't',
    userId: 'u',
    effects: [],
    createdAt: now,
    data: {
      account: '0xacc',
      amount_usd: '50',
      transfer_usd: null,
      destination: { chain: '137', token: 'USDC', slippage_bps: 50 },
      received: { units: '49000000', txHash: '0xf', at: new Date(now.getTime() - ageMs).toISOString() },
      ...data,
    },
  }) as unknown as TaskView<SwapAfterData>

type Facts = { step?: StepResult; fault?: Fault; executedTimes?: bigint }
function createSwap({ step, fault, executedTimes = 0n }: Facts = {}) {
  const done: string[] = []
  const deps = {
    route: { chainId: '42161', symbol: 'USDC', token: '0xusdc', bridge: '0xbridge' },
    chain: { row: { displayName: 'Arbitrum One' }, account: async () => ({ executedTimes }) },
    batches: { releaseGas: async (_tx: Tx, id: string) => void done.push(`gas of ${id} released`) },
    reserve: async (_tx: Tx, { id }: { id: string }, { amountUnits }: { amountUnits: bigint }) =>
      void done.push(`reserved ${amountUnits} for ${id}`),
    swaps: {
      async prepare(input: object) {
        if (fault) throw fault
        done.push(JSON.stringify(input))
        return {}
      },
      fund: async () => ({ data: swap, spend: { amountUnits: 49_000_000n } }),
      quoteSold: () => swap,
      steps: () => ({ sign: async () => step, confirm: async () => step, track: async () => step }),
    },
  } as unknown as SwapAfterDeps
  return { steps: swapAfterWithdrawal(deps), done }
}

type Ended = {
  end: string
  outcome: string
  error: { code: string; message: string }
  result: Record<string, unknown> & {
    remaining: Record<string, unknown> | null
    legs: { role: string; status: string }[]
  }
}
const ended = (result: object) => {
  const { end, outcome, error, result: shown } = result as Ended
  const { remaining, legs } = shown
  return {
    end: [end, outcome, error?.code],
    remaining: remaining && [remaining.place, remaining.chain_id, remaining.amount, remaining.tx_hash],
    legs: legs.map(({ role, status }) => `${role} ${status}`),
  }
}
const inWallet = (code: string) => ({
  end: ['failed', 'partial', code],
  remaining: ['wallet', '42161', '49000000', '0xf'],
  legs: ['withdrawal completed', 'swap failed'],
})

test('the swap is quoted for the payout that arrived, with the slippage of the caller, and reserves it', async () => {
  const { steps, done } = createSwap()
  const result = await steps.quote(taskOf(), context)
  assert.ok('next' in result && result.next === 'swap', JSON.stringify(result))
  await result.writes?.({} as Tx)
  assert.deepEqual(done, [
    JSON.stringify({
      chain_id_in: '42161',
      token_in: '0xusdc',
      chain_id_out: '137',
      token_out: 'USDC',
      amount: '49000000',
      slippage_bps: 50,
    }),
    'reserved 49000000 for t',
  ])
})

test('a payout that cannot be swapped stays in the wallet', async () => {
  const denied = createSwap({ fault: new Fault('policy_denied', 'chain 137 is not allowed') })
  assert.deepEqual(ended(await denied.steps.quote(taskOf(), context)), inWallet('policy_denied'))
  const none = createSwap({ fault: new Fault('no_route', 'There is no route') }).steps
  assert.ok('park' in (await none.quote(taskOf(), context)), 'routes come and go')
  assert.deepEqual(ended(await none.quote(taskOf({}, 60_000), context)), inWallet('no_route'))
  const away = createSwap({ fault: new Fault('unavailable', 'the provider is away') }).steps
  assert.ok('park' in (await away.quote(taskOf({}, 60_000), context)))
  assert.deepEqual(ended(await away.quote(taskOf({}, secondLegMs + 1), context)), inWallet('expired'))
})

test('a swap that moved nothing, was refunded or was lost is a part of the withdrawal', async () => {
  const error = { code: 'tx_failed', message: 'The transaction would fail' }
  const refunded = { chain_id: '42161', token_address: '0xusdc', amount: '48900000', tx_hash: '0xe' }
  const ends: [StepResult, unknown[]][] = [
    [{ end: 'failed', outcome: 'not_executed', error }, ['wallet', '42161', '49000000', '0xf']],
    [
      { end: 'failed', outcome: 'partial', error, result: { refunded, tx_hash: '0xd' } },
      ['wallet', '42161', '48900000', '0xe'],
    ],
    [
      { end: 'failed', outcome: 'partial', error, result: { refunded: null, tx_hash: '0xd' } },
      ['provider', '42161', '49000000', '0xd'],
    ],
  ]
  for (const [step, remaining] of ends) {
    const { steps, done } = createSwap({ step })
    const result = await steps.track(taskOf({ swap }), context)
    assert.deepEqual(ended(result), { ...inWallet('tx_failed'), remaining })
    await result.writes?.({} as Tx)
    assert.deepEqual(done, ['gas of t released'])
  }
})

test('a swap that was executed shows what arrived, its value and every fee', async () => {
  const { steps } = createSwap({
    step: { end: 'completed', outcome: 'executed', result: { amount_out: '47000000', tx_hash: '0xa' } },
  })
  const result = await steps.track(taskOf({ swap }), context)
  assert.deepEqual(ended(result), {
    end: ['completed', 'executed', undefined],
    remaining: null,
    legs: ['withdrawal completed', 'swap completed'],
  })
  const { amount, amount_usd, fee_usd, withdrawn_usd, chain_id, tx_hash } = (result as Ended).result
  assert.deepEqual(
    [amount, amount_usd, fee_usd, withdrawn_usd, chain_id, tx_hash],
    ['47000000', '47', '1.25', '50', '137', '0xa'],
  )
})

test('a swap of the payout that the database has forgotten is settled by what the account executed', async () => {
  const forgotten = { ...taskOf({}, secondLegMs + 1), executionId: 'e' }
  const { steps } = createSwap({ executedTimes: 1n })
  const found = await steps.quote(forgotten, context)
  assert.ok('park' in found && found.park.next === 'swap', JSON.stringify(found))
  assert.deepEqual([found.outcome, found.data?.swap], ['unknown', swap])
  const data = { ...forgotten.data, ...found.data } as SwapAfterData
  const error = { code: 'tx_failed', message: 'The transaction would fail' }
  for (const step of [
    { end: 'failed', outcome: 'not_executed', error },
    { next: 'swapped', sign: {} },
  ] as StepResult[]) {
    const again = await createSwap({ step }).steps.swap({ ...forgotten, data }, context)
    assert.deepEqual(again, { next: 'quote', state: 'settling' }, 'a node that lags')
  }
  const none = createSwap({
    executedTimes: 1n,
    fault: new Fault('policy_denied', 'chain 137 is not allowed'),
  }).steps
  const waiting = await none.quote(forgotten, context)
  assert.ok('park' in waiting && waiting.state === 'review', JSON.stringify(waiting))
  const { sought } = waiting.data as { sought?: object }
  assert.deepEqual(sought, { chain_id: '42161', kind: 'evm_batch', is_found: true, tx_hash: null })
})
