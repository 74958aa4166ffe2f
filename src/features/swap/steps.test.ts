import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BatchPlan } from '#engines/evm-batch/batch-plan.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { SwapDeps } from './deps.ts'
import { swapSteps } from './steps.ts'
import { ownNames, type SwapTask, type SwapTaskData } from './task-data.ts'

const { signal } = new AbortController()
const now = new Date(1_700_000_000_000)
const token = { symbol: 'USDC', name: 'USDC', decimals: 6, address: '0xusdc' }
const endOn = (chainId: string) => ({ chain_id: chainId, token, is_native: false, account: '0xown' })

const data = (destination: string): SwapTaskData => ({
  origin: endOn('8453'),
  destination: endOn(destination),
  amount_in: '5',
  amount_out_min: '4',
  steps: { family: 'evm', calls: [], spends: [] },
  target: '0xpool',
  usd_micros: '5',
  gas_min: '0',
  sign_until: new Date(now.getTime() + 60_000).toISOString(),
  settled_by: 'status',
  provider: 'relay',
  provider_request_id: '0x1',
  quote_id: null,
  claim: null,
  quote: {},
  policy: {},
  security: [],
})

/** The step that signs, under limits that allow only these chains. */
function signing(chains: readonly string[]) {
  const asked: PlannedAction[] = []
  const signed: string[] = []
  const plans: BatchPlan[] = []
  const driver = {
    async sign(_task: SwapTask, plan: BatchPlan) {
      const refused = await plan.refusal?.()
      if (refused) return refused
      signed.push('batch')
      plans.push(plan)
      return { next: 'confirm' as const }
    },
  }
  const deps = {
    policy: {
      async check(action: PlannedAction) {
        asked.push(action)
        if (!chains.includes(action.chainId)) throw new Fault('policy_denied', 'the chain is not allowed')
      },
    },
    batches: { driver: () => driver },
    svm: { driver: () => driver },
  } as unknown as SwapDeps
  const { sign } = swapSteps(deps, ownNames)
  const run = (destination: string, lateMs = 0) => {
    const task = { id: 't', userId: 'u', data: data(destination), effects: [] } as unknown as SwapTask
    return sign(task, { now: new Date(now.getTime() + lateMs), signal, stopping: signal })
  }
  return { run, asked, signed, plans }
}

test('a destination that is not allowed any more is refused where the swap is signed', async () => {
  const { run, signed } = signing(['8453'])
  const result = await run('137')
  assert.ok('end' in result && 'error' in result, JSON.stringify(result))
  assert.deepEqual(
    [result.end, result.outcome, result.error.code],
    ['failed', 'not_executed', 'policy_denied'],
  )
  assert.deepEqual(signed, [])
})

test('the limits hold for the token and the account where it arrives, without its value', async () => {
  const { run, asked, signed } = signing(['8453', '137'])
  assert.ok('next' in (await run('137')))
  assert.deepEqual(signed, ['batch'])
  assert.deepEqual(
    asked.map(({ chainId, tokens, recipients, usdMicros, exit }) => [
      chainId,
      tokens,
      recipients,
      usdMicros,
      exit,
    ]),
    [['137', ['0xusdc'], ['0xown'], 0n, false]],
  )
})

test('on one chain the signature itself asks about both tokens', async () => {
  const { run, asked, signed } = signing([])
  await run('8453')
  assert.deepEqual([asked, signed], [[], ['batch']])
})

test('a signature that is made late is void when one made at once would have been', async () => {
  const { run, plans } = signing([])
  for (const lateMs of [0, 49_999]) await run('8453', lateMs)
  const voidAt = now.getTime() + 60_000
  assert.deepEqual(
    plans.map(({ validUntil }) => validUntil?.getTime()),
    [voidAt, voidAt],
  )
})

test('what would be void within seconds is not signed', async () => {
  const { run, signed } = signing([])
  const result = await run('8453', 50_000)
  assert.ok('end' in result && 'error' in result, JSON.stringify(result))
  assert.deepEqual([result.outcome, result.error.code], ['not_executed', 'expired'])
  assert.deepEqual(signed, [])
})
