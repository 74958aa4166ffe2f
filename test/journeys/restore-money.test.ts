/** What happened after a backup is on the chains alone: after a restore nothing moves twice, and an operator adopts it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually, type Gateway, http, launch } from '../harness/gateway.ts'
import { swapOf } from './swap-users.ts'
import { createFundedPerson, personOf } from './users.ts'
import { arbitrum, base, solana, worldOf } from './world.ts'

type Order = { limit_order_id: string; status: string; task_id: string | null }
type Health = { status: string; checks: { money: { on_hold: { scope: string; reason: string }[] } } }
type Found = { user: string; execution_id: string; task_id: string | null }

const worldUrl = ({ lines }: Gateway) => lines.find((line) => line.startsWith('world '))!.split(/\s+/)[1]!
const swap = {
  chain_id_in: base,
  chain_id_out: arbitrum,
  token_in: 'USDC',
  token_out: 'USDC',
  amount: '20000000',
}

const sale = {
  chain_id_in: solana,
  chain_id_out: base,
  token_in: 'USDC',
  token_out: 'USDC',
  amount: '10000000',
}

test('an order that fired and a request, both after the backup, move nothing again after its restore', async () => {
  using folder = dataFolder()
  const env = { DATA_DIR: folder.path }
  const operator = operatorOf(env)
  const backup = `${folder.path}.backup`
  let gateway = await launch({ env })
  try {
    const world = await worldOf(worldUrl(gateway))
    const person = await createFundedPerson(gateway.url)
    const armed = await person.call<{ result: { order: Order } }>('POST /v1/limit-orders?wait=true', {
      key: 'armed-before',
      body: {
        chain_id_in: base,
        chain_id_out: solana,
        token_in: 'USDC',
        token_out: 'SOL',
        amount_usd: '25',
        price_usd_trigger: '170',
        condition: 'lte',
      },
    })
    assert.equal(armed.status, 200, JSON.stringify(armed.body))
    const { limit_order_id: orderId } = armed.body.result.order
    const orderAt = async (url: string) => {
      const { body } = await person.call<Order & { order?: Order }>(`GET /v1/limit-orders/${orderId}`, {
        at: url,
      })
      return body.order ?? body
    }
    await operator.run('backup', backup)

    const first = (await swapOf(person, swap, { key: 'after-backup' })).body
    assert.equal(first.outcome, 'executed', JSON.stringify(first))
    const second = (await swapOf(person, sale, { key: 'sold-after' })).body
    assert.equal(second.outcome, 'executed', JSON.stringify(second))
    await world.price({ symbol: 'SOL', price_usd: '160' })
    await eventually(
      async () => (await orderAt(gateway.url)).status === 'executed' || undefined,
      'the order was executed',
    )
    const paid = await world.usdcOf(person.evm)
    await gateway.stop()

    const { out } = await operator.act('disk lost', 'restore', backup)
    assert.match(out, /Money is on hold/)
    gateway = await launch({ env })
    const { url } = gateway
    const after = await worldOf(worldUrl(gateway))
    const health = async () => (await http<Health>(`${url}/health`)).body
    const { status, checks } = await health()
    assert.equal(status, 'degraded')
    assert.deepEqual(
      checks.money.on_hold.map(({ scope, reason }) => [scope, reason]),
      [['all', 'restored']],
    )
    const restored = await personOf(url, person)
    const held = await swapOf(restored, swap, { key: 'after-backup' })
    assert.deepEqual([held.status, held.body.code], [503, 'unavailable'])

    assert.match(await operator.refusal('time', 'resume', '--why', 'x'), /not adopted|not compared/)
    const found = await operator.rows<Found>('time', 'compare')
    const executions = found.filter((each) => each.execution_id)
    assert.equal(executions.length, 3, JSON.stringify(found))
    assert.ok(executions.every(({ user }) => user === person.agentId))
    await operator.act('as the chains show', 'time', 'adopt')
    const order = await orderAt(url)
    assert.equal(order.status, 'executed')
    assert.equal((await restored.task(order.task_id!)).kind, 'adopted')

    await operator.act('compared and adopted', 'time', 'resume')
    await eventually(
      async () => (await health()).checks.money.on_hold.length === 0 || undefined,
      'money goes on',
    )
    const again = (await swapOf(restored, swap, { key: 'after-backup' })).body
    assert.deepEqual([again.status, again.outcome], ['completed', 'executed'], JSON.stringify(again))
    const sold = (await swapOf(restored, sale, { key: 'sold-after' })).body
    assert.deepEqual([sold.status, sold.outcome], ['completed', 'executed'], JSON.stringify(sold))
    assert.equal(await after.usdcOf(person.evm), paid, 'nothing was paid twice, and nothing sold twice')
    // The repeat has taken the place of what was adopted of it.
    const { items } = (await restored.call<{ items: { kind: string; task_id: string }[] }>('GET /v1/tasks'))
      .body
    assert.deepEqual(
      items.filter(({ kind }) => kind === 'adopted').map(({ task_id }) => task_id),
      [order.task_id],
    )
    const next = (await swapOf(restored, swap, { key: 'new' })).body
    assert.equal(next.outcome, 'executed', JSON.stringify(next))
    assert.equal(await after.usdcOf(person.evm), paid - 20_000_000n)
  } finally {
    await gateway.stop()
  }
})
