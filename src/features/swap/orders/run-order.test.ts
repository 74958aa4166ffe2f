import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OrderRules } from '#engines/trigger-orders/order-kind-rules.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import { rearmedExecutionId } from '#kernel/task/execution-id.ts'
import type { StepContext, TaskView } from '#kernel/task/task.ts'
import { createOrderKind, type RunOrderDeps } from './run-order.ts'

const now = new Date(1_000_000)
const task = {
  id: 't',
  userId: 'u',
  input: {},
  data: { trigger_order_id: 'o' },
  createdAt: now,
  deadline: new Date(now.getTime() + 900_000),
} as unknown as TaskView
const rules = {
  kind: 'test_execute',
  soldToken: () => ({ chainId: '1', address: '0x' }),
  swapOf: () => ({}),
  resultOf: () => ({}),
} as unknown as OrderRules<Record<string, never>>

const assertFree = () => undefined

type Prepared = { fault: Fault; heldUnits?: bigint; units?: bigint; data?: object }

/** The step of an order whose swap fails with this fault, where so much is available. */
const prepared = async ({ fault, units = 1n, heldUnits = 0n, data = {} }: Prepared) => {
  const deps = {
    db: { query: async () => ({ rows: [] }) },
    assertFree,
    swaps: {
      steps: {},
      available: async () => ({ units, heldUnits }),
      prepare: () => Promise.reject(fault),
    },
  } as unknown as RunOrderDeps
  const sellAll = { ...rules, swapOf: (_: unknown, sold: bigint) => (sold > 0n ? {} : null) }
  const view = { ...task, data: { ...task.data, ...data } } as TaskView
  return createOrderKind(deps, sellAll as typeof rules).steps.prepare!(view, { now } as StepContext)
}
const errorOf = (result: Awaited<ReturnType<typeof prepared>>) =>
  'end' in result && result.end === 'failed' ? result.error.code : undefined

test('a security check that proved nothing is made again, and a token that it flagged ends the order', async () => {
  const unsafe = (status: string) =>
    new Fault('token_unsafe', 'The security check did not pass', { extras: { status } })
  for (const status of ['api_unavailable', 'skipped'])
    await assert.rejects(prepared({ fault: unsafe(status) }), { code: 'unavailable' })
  assert.equal(errorOf(await prepared({ fault: unsafe('flagged') })), 'token_unsafe')
})

test('a balance that another task reserved meanwhile, and a node that refuses a call, end no order', async () => {
  for (const code of ['insufficient_balance', 'upstream_rejected'] as const)
    await assert.rejects(prepared({ fault: new Fault(code, 'not now') }), { code: 'unavailable' })
  assert.equal(errorOf(await prepared({ fault: new Fault('policy_denied', 'never') })), 'policy_denied')
})

test('an order on what another task has reserved waits, also where it left too little for a swap', async () => {
  const fault = invalid('amount', 'below_minimum', 'Too little')
  assert.equal(errorOf(await prepared({ fault, heldUnits: 9n })), 'conflict')
  assert.equal(errorOf(await prepared({ fault, units: 0n, heldUnits: 9n })), 'conflict')
  assert.equal(errorOf(await prepared({ fault })), 'validation')
})

test('an order ends for want of a balance only after two reads of an empty wallet', async () => {
  const fault = new Fault('internal', 'it is not quoted')
  const first = await prepared({ fault, units: 0n })
  assert.ok('park' in first && first.park.next === 'prepare', JSON.stringify(first))
  assert.equal(errorOf(await prepared({ fault, units: 0n, data: { ...first.data } })), 'insufficient_balance')
})

test('what an order sold before its task is settled before its wallet is read, and never signed', async () => {
  const wallet = () => Promise.reject(new Error('the wallet is read'))
  const stepsOf = (soldBefore: () => Promise<bigint | undefined>, sign?: object) => {
    const quoteSold = async ({ amount }: { amount: object }) => ({ quoted: String(Object.values(amount)) })
    const effectKindOn = () => 'evm_batch'
    const swaps = {
      steps: { sign: async () => sign },
      available: wallet,
      effectKindOn,
      soldBefore,
      quoteSold,
    }
    return createOrderKind({ swaps, assertFree } as unknown as RunOrderDeps, rules).steps
  }
  const sought = { ...task, executionId: 'e', effects: [], outcome: 'unknown' } as TaskView
  const context = { now } as StepContext
  const prepare = (view: TaskView, sold: () => Promise<bigint | undefined>) =>
    stepsOf(sold).prepare!(view, context)

  const unmarked = await prepare({ ...sought, outcome: null }, async () => 7n)
  assert.ok('park' in unmarked && unmarked.outcome === 'unknown' && unmarked.park.next === 'prepare')
  const found = await prepare(sought, async () => 7n)
  assert.ok('park' in found && found.outcome === 'unknown' && found.park.next === 'sign')
  assert.deepEqual(found.data, { quoted: '7', is_sold: true })
  const silent = async () => {
    throw new Fault('unavailable', 'The node is away')
  }
  const again = await prepare(sought, silent)
  assert.ok('park' in again && again.outcome === 'unknown' && again.park.next === 'prepare')
  await assert.rejects(prepare({ ...sought, outcome: null }, silent), { code: 'unavailable' })
  assert.deepEqual(again.data?.sought, { chain_id: '1', kind: 'evm_batch', is_found: false, tx_hash: null })
  const unseen = async () => {
    throw new Fault('unavailable', 'The transaction was not found', { extras: { executed: true } })
  }
  for (const outcome of [null, 'unknown'] as const) {
    const stored = await prepare({ ...sought, outcome }, unseen)
    assert.ok('park' in stored && stored.outcome === 'unknown' && stored.park.next === 'prepare')
    const missed = await prepare({ ...sought, data: { ...sought.data, ...stored.data } }, silent)
    assert.deepEqual(missed.data?.sought, { chain_id: '1', kind: 'evm_batch', is_found: true, tx_hash: null })
  }
  const cleared = await prepare(sought, async () => undefined)
  assert.ok('next' in cleared && cleared.next === 'prepare')

  const lagging = stepsOf(async () => 7n, { next: 'sign', state: 'held' })
  const result = await lagging.sign!({ ...sought, data: { ...sought.data, ...found.data } }, context)
  assert.ok('next' in result && result.next === 'prepare' && result.data?.is_sold === false)
})

test('a signature before which a node refuses a call is tried again', async () => {
  const sign = () => Promise.reject(new Fault('upstream_rejected', 'The node refused'))
  const deps = { swaps: { steps: { sign } } } as unknown as RunOrderDeps
  await assert.rejects(createOrderKind(deps, rules).steps.sign!(task, { now } as StepContext), {
    code: 'unavailable',
  })
})

const throwHeld = () => {
  throw new Fault('unavailable', 'Money is on hold', { extras: { reason: 'money_on_hold' } })
}

test('an order of a chain on hold waits, and is armed again without a failure', async () => {
  const attempted = { ...task, input: { failures: 10, moved: 3 }, createdAt: new Date(0) } as TaskView
  const atEnd = { now: new Date(task.deadline.getTime() - 1_000) } as StepContext
  let input: unknown
  const armed = await armedAfter(
    async (kind) => {
      const waits = kind.steps.prepare!(task, { now } as StepContext)
      await assert.rejects(Promise.resolve(waits), {
        code: 'unavailable',
        extras: { reason: 'money_on_hold' },
      })
      return (await kind.steps.prepare!(attempted, atEnd)) as { complete?: unknown }
    },
    {},
    (values) => {
      input = values[2]
    },
  )
  assert.equal(armed, 'as before')
  assert.deepEqual(JSON.parse(String(input)), { failures: 10, moved: 3 })
})

/** The execution as which an order is armed again by the end that its kind makes of this one; undefined where it is not. */
const armedAfter = async (
  ended: (kind: ReturnType<typeof createOrderKind>) => Promise<{ complete?: unknown }>,
  swapSteps: object = {},
  written: (values: unknown[]) => void = () => undefined,
) => {
  const order = { id: 'o', status: 'fired', input: {}, quote_key: null }
  const deps = {
    clock: { now: () => now },
    assertFree: throwHeld,
    swaps: { steps: swapSteps },
  } as unknown as RunOrderDeps
  const event = ({ status }: { status: string }) => ({ type: 'order', data: { status } })
  const { complete } = await ended(createOrderKind(deps, { ...rules, event } as unknown as typeof rules))
  let execution: unknown
  const tx = {
    async query({ text, values }: { text: string; values: unknown[] }) {
      if (!text.includes('update')) return { rows: [order] }
      written(values)
      execution = values[5] ?? 'as before'
      return { rows: [{ ...order, status: 'armed' }] }
    },
  }
  const added = await (complete as (tx: object) => Promise<{ events: { data: { status: string } }[] }>)(tx)
  return added.events[0]?.data.status === 'armed' ? execution : undefined
}

test('an order whose task the engine ends is armed again, unless it may never be sold', async () => {
  const armed = (code: string) =>
    armedAfter(async (kind) => {
      const error = { code, message: 'The task failed' }
      return kind.completeEnd!(task, { end: 'failed', outcome: 'not_executed', error })
    })
  for (const code of ['expired', 'internal', 'unavailable', 'upstream_timeout', 'upstream_rejected'])
    assert.ok(await armed(code), code)
  for (const code of ['policy_denied', 'token_unsafe', 'trading_paused', 'insufficient_balance'])
    assert.ok(!(await armed(code)), code)
})

const afterRefund = (refunded: object | null, outcome = 'partial') => {
  const ending = {
    end: 'failed',
    outcome,
    error: { code: 'refunded', message: 'The deposit was refunded', retryable: false },
    result: { amount_in: '1000', amount_out: '0', refunded },
  }
  const track = async () => ending
  return armedAfter(async (kind) => kind.steps.track!(task, { now } as StepContext), { track })
}

test('an order whose deposit came back is armed again, also where the refund had a cost', async () => {
  assert.ok(await afterRefund({ chain_id: '1', token_address: '0x', amount: '990', tx_hash: 'h' }))
  assert.ok(!(await afterRefund({ chain_id: '1', token_address: '0xother', amount: '990', tx_hash: 'h' })))
  assert.ok(!(await afterRefund({ chain_id: '2', token_address: '0x', amount: '990', tx_hash: 'h' })))
  assert.ok(!(await afterRefund({ chain_id: '1', token_address: '0x', amount: '979', tx_hash: 'h' })))
  assert.ok(!(await afterRefund(null)))
})

test('the next attempt of an order is another execution where the chain has executed the last one', async () => {
  const refunded = { chain_id: '1', token_address: '0x', amount: '1000', tx_hash: 'h' }
  const own = rearmedExecutionId({ id: 'o', execution_id: null })
  assert.equal(await afterRefund(refunded), own)
  assert.equal(await afterRefund(refunded, 'not_executed'), own)
  assert.equal(await afterRefund(null, 'not_executed'), 'as before')
})
