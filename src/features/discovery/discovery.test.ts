import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Operation } from '#kernel/contract/operation.ts'
import { discovery } from './discovery.ts'

type Body = Record<string, { endpoints: string[] }>

const operation = (group: string, key: string) =>
  ({ name: `${group.replace('-', '_')}_${key}`, group, key }) as unknown as Operation

async function manifest(operations: Operation[]): Promise<Body> {
  const [capabilities] = discovery({
    operations: () => operations,
    facts: { earn: { min_deposit_usdc: '1' }, perp: { venue: 'unreleased' } },
    protocols: ['http', 'sse'],
    health: () => Promise.reject(new Error('not asked')),
  })
  const run = capabilities?.run as unknown as () => Promise<Body>
  return run()
}

test('only released sections are present, each with its operations and facts', async () => {
  const body = await manifest([
    operation('earn', 'deposit'),
    operation('limit-orders', 'create'),
    operation('outstanding_orders', 'list'),
    operation('swap', 'swap'),
    operation('tasks', 'get'),
  ])
  assert.deepEqual(body, {
    trading: { endpoints: ['limit_orders_create', 'outstanding_orders_list', 'swap_swap'] },
    earn: { endpoints: ['earn_deposit'], min_deposit_usdc: '1' },
    protocols: ['http', 'sse'],
  })
})

test('a gateway without sections lists none', async () => {
  assert.deepEqual(await manifest([]), { protocols: ['http', 'sse'] })
})
