/**
 * A database that goes back to an earlier state has forgotten what was executed since: a repeat under the same key finds it at
 * the chain, moves nothing again, and answers with it.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { operatorOf } from '../harness/admin.ts'
import { copyOfDatabase, type TestDatabase, testDatabase } from '../harness/cluster.ts'
import { dataFolder, eventually, type Gateway, http, launch } from '../harness/gateway.ts'
import { processWorld } from '../harness/process-world.ts'
import { venueControl } from '../harness/venue-gateway.ts'
import { balancesOf, personOf } from './swap-users.ts'
import { createFundedPerson, type Person, type TaskBody } from './users.ts'
import { arbitrum, base, polygon, solana, type World, worldOf } from './world.ts'

type Request = { route: string; body: object }
const requestsOf = (positionId: string): Record<string, Request> => ({
  deposit: { route: 'POST /v1/earn/deposit', body: { amount_usdc: '12' } },
  withdrawal: {
    route: 'POST /v1/earn/withdraw',
    body: { position_id: positionId, amount_usdc: '7' },
  },
  swap: {
    route: 'POST /v1/swap',
    body: { chain_id_in: base, token_in: 'USDC', token_out: 'ETH', amount: '20000000' },
  },
  bridge: {
    route: 'POST /v1/swap',
    body: { chain_id_in: base, chain_id_out: polygon, token_in: 'USDC', token_out: 'USDC', amount_usd: '20' },
  },
  'bridge-from-solana': {
    route: 'POST /v1/swap',
    body: {
      chain_id_in: solana,
      chain_id_out: base,
      token_in: 'USDC',
      token_out: 'USDC',
      amount: '20000000',
    },
  },
  recharge: {
    route: 'POST /credits/onchain-recharge',
    body: { pack_id: '5', chain_id: base },
  },
  'recharge-on-solana': {
    route: 'POST /credits/onchain-recharge',
    body: { pack_id: '5', chain_id: solana, token_address: 'SOL' },
  },
  'funding-of-the-venue': { route: 'POST /v1/perp/fund', body: { amount_usd: '15' } },
})

const order: Request = {
  route: 'POST /v1/perp/open',
  body: { asset: 'BTC', side: 'long', size: '0.001', leverage: 5 },
}

describe('a database that has forgotten what was executed', () => {
  const folder = dataFolder()
  const databases: TestDatabase[] = []
  let gateway: Gateway
  let world: World
  let env: Record<string, string>
  let control: string

  const start = async (database: TestDatabase): Promise<void> => {
    gateway = await launch({ env: { ...env, DATABASE_URL: database.url }, control })
  }
  before(async () => {
    const urls = await processWorld()
    control = urls.control
    world = await worldOf(control)
    env = { ...world.env, RELAY_API_KEY: 'any', DATA_DIR: folder.path, HYPERLIQUID_WEIGHT_PER_MINUTE: '0' }
    databases.push(await testDatabase())
    await start(databases[0]!)
  })
  after(async () => {
    try {
      await gateway?.[Symbol.asyncDispose]()
    } finally {
      for (const database of databases) await database.drop()
      folder[Symbol.dispose]()
    }
  })

  test('a repeat under its key moves nothing again, and answers with what was executed', async () => {
    const person = await createFundedPerson(gateway.url)
    await world.fund(solana, person.solana, 'USDC', '100')
    await world.fund(solana, person.solana, 'native', '1')
    await world.fund(base, person.evm, 'native', '0.1')
    await world.fund(arbitrum, person.evm, 'USDC', '500')
    const { result } = await executed(person, { route: 'POST /v1/earn/deposit', body: { amount_usdc: '30' } })
    await person.call('POST /v1/perp/setup?wait=true', { body: {} })
    await executed(person, { route: 'POST /v1/perp/fund', body: { amount_usd: '200' } })
    const requests = requestsOf(result.position_id)
    await gateway.stop()
    databases.push(await copyOfDatabase(databases[0]!.url))

    await start(databases[0]!)
    const first = await sendAll(await personOf(gateway.url, person), requests)
    await executed(await personOf(gateway.url, person), order, 'key-of-order')
    const held = await balancesOf(world, person)
    const orders = await ordersOf(person)
    await gateway.stop()

    await start(databases[1]!)
    await goOnUnseen(databases[1]!)
    await waitsWhilePruned(await personOf(gateway.url, person), requests)
    const again = await sendAll(await personOf(gateway.url, person), requests)
    // A fill that no task made freezes the account at the venue, until an operator has compared; before, it is found.
    const { body } = await (await personOf(gateway.url, person)).call<TaskBody>(`${order.route}?wait=true`, {
      body: order.body,
      key: 'key-of-order',
    })
    assert.ok(body.code === 'trading_paused' || body.outcome === 'executed', JSON.stringify(body))
    assert.deepEqual(await balancesOf(world, person), held)
    assert.deepEqual(await ordersOf(person), orders)
    for (const [name, one] of first) {
      const other = again.get(name)!
      assert.notEqual(one.task_id, other.task_id, name)
      assert.deepEqual(shown(other), shown(one), name)
    }
  })

  /** The gateway has noticed that its database went back; what a repeat finds by itself needs no comparison. */
  const goOnUnseen = async ({ url }: TestDatabase): Promise<void> => {
    const holds = async () =>
      (await http<{ checks: { money: { on_hold: { reason: string }[] } } }>(`${gateway.url}/health`)).body
        .checks.money.on_hold
    assert.deepEqual(
      (await holds()).map(({ reason }) => reason),
      ['went_back'],
    )
    const operator = operatorOf({ ...env, DATABASE_URL: url })
    await operator.act('the repeats find what was executed', 'time', 'resume', '--unseen')
    await eventually(async () => (await holds()).length === 0 || undefined, 'money goes on')
  }

  /** A node that has thrown away its history lists nothing, which proves nothing. */
  const waitsWhilePruned = async (person: Person, requests: Record<string, Request>) => {
    const name = 'bridge-from-solana'
    const { route, body } = requests[name]!
    const storeSlots = (stored_slots: number) =>
      http(`${control}/chains/solana/history`, { method: 'POST', body: { stored_slots } })
    await storeSlots(1)
    try {
      const { body: accepted } = await person.call<TaskBody>(route, { body, key: `key-of-${name}` })
      await eventually(async () => {
        const { body: task } = await person.call<TaskBody>(`GET /v1/tasks/${accepted.task_id}`)
        assert.ok(task.status !== 'completed', JSON.stringify(task))
        return task.outcome === 'unknown' || undefined
      }, 'its outcome is unknown')
    } finally {
      await storeSlots(Number.MAX_SAFE_INTEGER)
    }
  }

  const ordersOf = async ({ evm }: Person) => {
    const path = `/effects?user=${evm.toLowerCase()}`
    const { accounts } = await venueControl(control)<{ accounts: { fills: { oid: number }[] }[] }>(
      'GET',
      path,
    )
    return accounts.flatMap(({ fills }) => fills.map(({ oid }) => oid))
  }
})

async function executed(person: Person, { route, body }: Request, key?: string): Promise<TaskBody> {
  const answer = await person.call<TaskBody>(`${route}?wait=true&timeout=60`, { body, ...(key && { key }) })
  assert.deepEqual(
    [answer.status, answer.body.outcome],
    [200, 'executed'],
    `${route} ${JSON.stringify(answer.body)}`,
  )
  return answer.body
}

async function sendAll(person: Person, requests: Record<string, Request>): Promise<Map<string, TaskBody>> {
  const done = new Map<string, TaskBody>()
  for (const [name, request] of Object.entries(requests))
    done.set(name, await executed(person, request, `key-of-${name}`))
  return done
}

/** What was executed, beside ids and figures of the quote that the repeat asked for. */
const shown = ({ outcome, balance_changes, result, transactions }: TaskBody) => ({
  outcome,
  balance_changes,
  hash: result.tx_hash,
  shares: result.shares_delta,
  transactions: transactions.map(({ tx_hash, status }) => ({ tx_hash, status })),
})
