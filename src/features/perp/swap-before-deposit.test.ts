import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SwapTaskData } from '#features/swap/task-data.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Effect, StepResult, Tx } from '#kernel/task/task.ts'
import type { FundDeps, FundTaskData } from './fund-admission.ts'
import { afterSwapStep, depositHold, type FundTask, swapBeforeDepositSteps } from './swap-before-deposit.ts'
import { type Delivered, secondLegMs } from './swap-leg.ts'

const now = new Date(1_700_000_000_000)
const { signal } = new AbortController()
const context = { now, signal, stopping: signal }
const usdc = { symbol: 'USDC', name: 'USDC', decimals: 6, address: '0xusdc' }
const swap = {
  origin: { chain_id: '8453', token: { ...usdc, address: '0xbase' }, is_native: false, account: '0xacc' },
  destination: { chain_id: '42161', token: usdc, is_native: false, account: '0xacc' },
  amount_in: '21000000',
  amount_out_min: '20000000',
  deposit_tx: '0xd',
  quote: { fees_usd: '0.1' },
} as unknown as SwapTaskData
const at = (ageMs: number) => new Date(now.getTime() - ageMs).toISOString()
const swapped = (units: string, ageMs = 0): Delivered => ({
  units,
  txHash: '0xf',
  at: at(ageMs),
})
const swapEffect = { step: 'swap', status: 'confirmed', intent: { chainId: '8453' } } as unknown as Effect

const taskOf = (data: Partial<FundTaskData>): FundTask =>
  ({
    id: 't',
    userId: 'u',
    effects: [swapEffect],
    createdAt: now,
    data: { account: '0xacc', amount_units: '19000000', since_ms: 0, ahead_ms: 0, swap, ...data },
  }) as unknown as FundTask

type Facts = { walletUnits?: bigint; step?: StepResult; fault?: Fault; executedTimes?: bigint }

function createDeposit({ walletUnits = 100_000_000n, step, fault, executedTimes = 0n }: Facts = {}) {
  const done: string[] = []
  const deps = {
    route: { chainId: '42161', symbol: 'USDC', token: '0xusdc', bridge: '0xbridge' },
    limits: { minFundUsd: '5' },
    clock: { now: () => now },
    db: {},
    chain: {
      row: { id: '42161', displayName: 'Arbitrum One', family: 'evm' },
      account: async () => ({ executedTimes }),
      async balances() {
        if (fault) throw fault
        return { tokens: [walletUnits] }
      },
    },
    venue: { account: async () => ({ timeMs: now.getTime(), cashUsd: '0', positions: [], unread: [] }) },
    tradingKeys: { of: async () => ({}) },
    ledger: { balance: async () => ({ heldUnits: 0n, version: 1n }) },
    evmAddressOf: async () => '0xacc',
    transferCall: (to: string) => ({ to, value: 0n, data: '0x' }),
    batches: {
      ready: async () => undefined,
      simulate: async () => ({ ok: true, gas: 1n }),
      gasCharge: async () => ({ chainId: '42161', wei: 1n }),
      releaseGas: async (_tx: Tx, id: string) => void done.push(`gas of ${id} released`),
    },
    policy: {
      release: async (_tx: Tx, { intent }: { intent: object }) =>
        void done.push(`released ${JSON.stringify(intent)}`),
    },
    reserve: async (
      _tx: Tx,
      _task: object,
      { amountUnits, holdKey }: { amountUnits: bigint; holdKey: string },
    ) => void done.push(`reserved ${amountUnits} as ${holdKey}`),
    swaps: { steps: () => ({ sign: async () => step, confirm: async () => step, track: async () => step }) },
  } as unknown as FundDeps
  return { deps, done, steps: swapBeforeDepositSteps(deps) }
}

const failedPart = (result: object) => {
  const {
    end,
    outcome,
    error,
    result: shown,
  } = result as {
    end: string
    outcome: string
    error: { code: string; message: string }
    result: { remaining: Record<string, unknown>; legs: { role: string; status: string }[] }
  }
  const { place, chain_id: chain, amount } = shown.remaining
  return {
    end: [end, outcome, error.code],
    remaining: [place, chain, amount],
    legs: shown.legs.map(({ role, status }) => `${role} ${status}`),
  }
}
const inWallet = (code: string, units: string) => ({
  end: ['failed', 'partial', code],
  remaining: ['wallet', '42161', units],
  legs: ['swap completed', 'deposit failed'],
})

test('the end of the swap is the begin of the deposit, with what it delivered', async () => {
  const { steps } = createDeposit({
    step: {
      end: 'completed',
      outcome: 'executed',
      result: { amount_out: '20000001', tx_hash: '0xf' },
      spent: 5n,
    },
  })
  const result = await steps.track(taskOf({}), context)
  assert.ok('next' in result && !('end' in result))
  assert.deepEqual(
    [result.next, result.data?.swapped, 'spent' in result && result.spent],
    ['deposit', swapped('20000001'), 5n],
  )
})

test('a swap that failed ends the task with its own outcome, and says where the money is', async () => {
  const refunded = { chain_id: '8453', token_address: '0xbase', amount: '20900000', tx_hash: '0xe' }
  const error = { code: 'refunded', message: 'The deposit was refunded' }
  const ends: [StepResult, object][] = [
    [
      { end: 'failed', outcome: 'partial', error, result: { refunded, tx_hash: '0xd' } },
      ['wallet', '8453', '20900000'],
    ],
    [{ end: 'failed', outcome: 'not_executed', error }, ['wallet', '8453', '21000000']],
    [
      { end: 'failed', outcome: 'partial', error, result: { refunded: null, tx_hash: '0xd' } },
      ['provider', '8453', '21000000'],
    ],
    [
      { end: 'failed', outcome: 'partial', error, result: { amount_out: '10000000', refunded: null } },
      ['provider', '8453', '10500000'],
    ],
  ]
  for (const [step, remaining] of ends) {
    const result = await createDeposit({ step }).steps.track(taskOf({}), context)
    const { outcome } = step as { outcome: string }
    assert.deepEqual(failedPart(result), {
      end: ['failed', outcome, 'refunded'],
      remaining,
      legs: ['swap failed', 'deposit not_started'],
    })
  }
})

test('the deposit is what was received, reserved under a hold of its own, and counted once', async () => {
  const { steps, done } = createDeposit()
  const result = await steps.deposit(taskOf({ swapped: swapped('20000001') }), context)
  assert.ok('next' in result && 'data' in result)
  assert.deepEqual([result.next, result.data?.amount_units], ['sign', '20000001'])
  await result.writes?.({} as Tx)
  assert.deepEqual(done, ['released {"chainId":"8453"}', `reserved 20000001 as ${depositHold('t')}`])
})

test('a deposit that is not possible leaves the dollars in the wallet', async () => {
  const short = await createDeposit().steps.deposit(taskOf({ swapped: swapped('4999999') }), context)
  assert.deepEqual(failedPart(short), inWallet('slippage', '4999999'))
  const late = await createDeposit().steps.deposit(
    taskOf({ swapped: swapped('20000000', secondLegMs + 1) }),
    context,
  )
  assert.deepEqual(failedPart(late), inWallet('expired', '20000000'))
  const spent = createDeposit({ walletUnits: 1n }).steps
  const soon = await spent.deposit(taskOf({ swapped: swapped('20000000') }), context)
  assert.ok('park' in soon, 'a node may lag behind')
  const gone = await spent.deposit(taskOf({ swapped: swapped('20000000', 60_000) }), context)
  assert.deepEqual(failedPart(gone), inWallet('insufficient_balance', '20000000'))
  const away = createDeposit({ fault: new Fault('unavailable', 'the node is away') }).steps
  const parked = await away.deposit(taskOf({ swapped: swapped('20000000', 60_000) }), context)
  assert.ok('park' in parked, JSON.stringify(parked))
})

test('once the swap was executed, no failure of the deposit is a task that executed nothing', async () => {
  const error = { code: 'tx_failed', message: 'The transaction would fail: paused' }
  const { deps, done } = createDeposit()
  const failing = afterSwapStep(deps, async () => ({
    end: 'failed',
    outcome: 'not_executed',
    error,
    effects: [{ effectId: 'e', status: 'dropped' }],
    writes: async () => void done.push('the cost is booked'),
  }))
  const result = await failing(taskOf({ swapped: swapped('20000000') }), context)
  assert.deepEqual(failedPart(result), inWallet('tx_failed', '20000000'))
  assert.deepEqual(result.effects, [{ effectId: 'e', status: 'dropped' }])
  await result.writes?.({} as Tx)
  assert.deepEqual(done, ['the cost is booked', 'gas of t released'])
  const refusing = afterSwapStep(deps, async () => ({
    next: 'confirm',
    sign: {
      nonceSequence: { kind: 'evm', chain: '42161', signer: '0x1' },
      build: async () => Promise.reject(),
    },
  }))
  const signing = await refusing(taskOf({ swapped: swapped('20000000') }), context)
  assert.ok('sign' in signing)
  const refused = signing.sign.onRefused?.(new Fault('policy_denied', 'the bridge is not allowed'))
  assert.deepEqual(failedPart(refused!), inWallet('policy_denied', '20000000'))
  const direct = await failing(
    { ...taskOf({}), data: { ...taskOf({}).data, swap: undefined } } as never,
    context,
  )
  assert.ok('end' in direct && direct.outcome === 'not_executed')
})

test('a deposit that the database has forgotten is settled by what the account executed, and never called in the wallet', async () => {
  const { deps, steps } = createDeposit({ executedTimes: 1n, walletUnits: 0n })
  const late = swapped('20000001', secondLegMs + 1)
  const forgotten = { ...taskOf({ swapped: late }), executionId: 'e' }
  const found = await steps.deposit(forgotten, context)
  assert.ok('park' in found && found.park.next === 'sign', JSON.stringify(found))
  const data = { amount_units: '20000001', since_ms: Date.parse(late.at), is_deposited: true, polls: 0 }
  assert.deepEqual([found.outcome, found.data], ['unknown', data])
  const unknown = [
    { end: 'failed', outcome: 'not_executed', error: { code: 'tx_failed', message: 'it would fail' } },
    { next: 'confirm', sign: {} },
  ] as StepResult[]
  for (const each of unknown) {
    const step = afterSwapStep(deps, async () => each as never)
    const again = await step({ ...forgotten, data: { ...forgotten.data, ...data } }, context)
    assert.deepEqual(again, { next: 'deposit', state: 'settling' }, 'a node that lags')
  }
  const own = { ...swapEffect, kind: 'evm_batch', intent: { chainId: '42161' } } as unknown as Effect
  const counted = await steps.deposit({ ...forgotten, effects: [own] }, context)
  assert.deepEqual(failedPart(counted), inWallet('expired', '20000001'), 'the swap is on the same chain')
})
