import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDiscovery, type Released } from './discovery.ts'

const protocols = ['http', 'sse', 'mcp']

async function manifest(sections: Released[]): Promise<unknown> {
  const [capabilities] = createDiscovery({
    sections: () => sections,
    health: () => Promise.reject(new Error('not asked')),
  })
  const run = capabilities?.run as unknown as () => Promise<unknown>
  return run()
}

test('only released parts are present, each with the operations and facts of its sections', async () => {
  const body = await manifest([
    { part: 'earn', operations: [{ name: 'earn_deposit' }], facts: { min_deposit_usdc: '1' } },
    { part: 'perp', operations: [], facts: { venue: 'unreleased' } },
    { part: 'trading', operations: [{ name: 'swap' }], facts: { dry_run: true } },
    { part: 'trading', operations: [{ name: 'limit_orders_create' }] },
    { operations: [{ name: 'tasks_get' }] },
  ])
  assert.deepEqual(body, {
    trading: { endpoints: ['swap', 'limit_orders_create'], dry_run: true },
    earn: { endpoints: ['earn_deposit'], min_deposit_usdc: '1' },
    protocols,
  })
})

test('a gateway without sections lists none', async () => {
  assert.deepEqual(await manifest([]), { protocols })
})
