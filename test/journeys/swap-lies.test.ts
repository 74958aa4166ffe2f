/** A provider that lies about what became of a deposit: only the chains end a swap, and each payment ends one. */
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, afterEach, before, describe, test } from 'node:test'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { processWorld } from '../harness/process-world.ts'
import { nodeProxy } from '../harness/service-proxies.ts'
import {
  assertMeasured,
  balancesOf,
  createFundedPerson,
  executed,
  type SwapBody,
  swapOf,
  usdcToPolygon,
} from './swap-users.ts'
import type { Person } from './users.ts'
import { base, type World, worldOf } from './world.ts'

type Status = { status: string; txHashes?: string[] }
type Requests = { requests: { data: object }[] }
type Lie = (truth: Status) => Status

/** The solver of the world, whose answers about a request can be replaced. */
async function lyingSolver(url: string) {
  let lie: Lie | undefined
  let lieOfReasons: ((truth: Requests) => Requests) | undefined
  let answers = 0
  const bodyOf = async (request: IncomingMessage) => Buffer.concat(await request.toArray())
  const server = createServer(async (request, reply) => {
    const body = await bodyOf(request)
    const apiKey = request.headers['x-api-key']
    const found = await fetch(`${url}${request.url}`, {
      method: request.method!,
      // Without its key the solver does not say why it refunded, and the lie about a refund ends nothing.
      headers: { 'content-type': 'application/json', ...(apiKey && { 'x-api-key': String(apiKey) }) },
      ...(body.length > 0 && { body }),
    })
    const text = await found.text()
    const isStatus = request.url!.startsWith('/intents/status')
    const replaced = isStatus ? lie : request.url!.startsWith('/requests/v3') ? lieOfReasons : undefined
    if (isStatus && lie) answers += 1
    reply.writeHead(found.status, { 'content-type': 'application/json' })
    reply.end(replaced ? JSON.stringify(replaced(JSON.parse(text))) : text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    replace(next: Lie | undefined) {
      lie = next
      answers = 0
    },
    lies: () => answers,
    /** What the solver says of the reasons of every request. */
    replaceReasons(reasons: object | undefined) {
      lieOfReasons =
        reasons &&
        (({ requests }) => ({
          requests: requests.map((each) => ({ ...each, data: { ...each.data, ...reasons } })),
        }))
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

describe('a provider lies about a deposit', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let solver: Awaited<ReturnType<typeof lyingSolver>>
  let node: Awaited<ReturnType<typeof nodeProxy>>
  before(async () => {
    const urls = await processWorld()
    solver = await lyingSolver(urls.solver)
    node = await nodeProxy(urls.evm[base]!)
    gateway = await freshGateway({ LIFI_URL: 'off', RELAY_URL: solver.url, BASE_RPC_URL: node.url })
    world = await worldOf(gateway.world)
  })
  afterEach(() => {
    solver.replace(undefined)
    solver.replaceReasons(undefined)
    node.replace()
  })
  after(async () => {
    await gateway?.[Symbol.asyncDispose]()
    await node?.[Symbol.asyncDispose]()
    await solver?.[Symbol.asyncDispose]()
  })

  /** The swap outlasts the lie, and ends by the truth. */
  const outlasts = async (person: Person, lieOf: () => Lie | Promise<Lie>) => {
    solver.replace((truth) => ({ ...truth, status: 'pending', txHashes: [] }))
    const { body } = await swapOf(person, usdcToPolygon, { query: '' })
    solver.replace(await lieOf())
    await eventually(async () => (solver.lies() >= 5 ? true : undefined), 'the lie was answered', 30_000)
    const during = await person.task(body.task_id)
    assert.deepEqual([during.status, during.state], ['running', 'settling'], JSON.stringify(during))
    solver.replace(undefined)
    return eventually(
      async () => {
        const task = await person.task(body.task_id)
        return task.status === 'running' ? undefined : task
      },
      'the swap has ended',
      30_000,
    )
  }

  test('the payment of one swap does not end another one', async () => {
    const person = await createFundedPerson(gateway.url)
    const first = await executed(person, usdcToPolygon)
    const second = await outlasts(person, () => (truth) => ({
      ...truth,
      status: 'success',
      txHashes: [first.result.tx_hash],
    }))
    assert.deepEqual([second.status, second.outcome], ['completed', 'executed'], JSON.stringify(second))
    assert.notEqual(second.result.tx_hash, first.result.tx_hash)
  })

  test('a failure that the provider takes back ends nothing', async () => {
    const person = await createFundedPerson(gateway.url)
    const done = await outlasts(person, () => (truth) => ({ ...truth, status: 'failure', txHashes: [] }))
    assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
  })

  /** The provider gives the request up, and pays after that. */
  const paidLate = async (person: Person) => {
    solver.replaceReasons({ failReason: 'SLIPPAGE', refundFailReason: 'AMOUNT_TOO_LOW_TO_REFUND' })
    solver.replace((truth) => ({ ...truth, status: 'failure', txHashes: [] }))
    const { body: failed } = await swapOf(person, usdcToPolygon)
    assert.deepEqual([failed.status, failed.outcome], ['failed', 'partial'], JSON.stringify(failed))
    assert.equal(failed.result.refunded, null)
    solver.replaceReasons(undefined)
    solver.replace(undefined)
    type Page = { events: { type: string; task_id: string; data: Record<string, string> }[] }
    const event = await eventually(
      async () => {
        const { body } = await person.call<Page>('GET /v1/notifications?types=swap.late_payment')
        return body.events.find(({ task_id }) => task_id === failed.task_id)
      },
      'the late payment is an event',
      60_000,
    )
    const shown = (await person.task(failed.task_id)) as unknown as SwapBody
    return { failed, shown, event }
  }

  test('a refund after the failure was announced is in the task and in an event', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    await world.solver('/force', { failReason: 'SLIPPAGE' })
    const { shown, event } = await paidLate(person)
    const { refunded } = shown.result
    assert.deepEqual([shown.status, shown.outcome, shown.error?.code], ['failed', 'partial', 'refunded'])
    assert.equal(refunded?.chain_id, base)
    assert.deepEqual(
      [event.data.type, event.data.amount, event.data.tx_hash, event.data.symbol],
      ['refund', refunded!.amount, refunded!.tx_hash, 'USDC'],
    )
    await assertMeasured(world, person, held, [shown])
  })

  test('a fill after the failure was announced is shown as well, and fills nothing else', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const { shown, event } = await paidLate(person)
    assert.deepEqual([shown.status, shown.result.refunded], ['failed', null])
    assert.deepEqual(
      [event.data.type, event.data.amount, event.data.tx_hash],
      ['fill', shown.result.amount_out, shown.result.tx_hash],
    )
    await assertMeasured(world, person, held, [shown])
    type Holdings = { holdings: { chain_id: string; symbol: string; avg_entry_price_usd: string | null }[] }
    const { body } = await person.call<Holdings>('GET /v1/holdings?chain_type=evm')
    const bought = body.holdings.find(({ chain_id, symbol }) => chain_id === '137' && symbol === 'USDC')
    // The price of the fill is that of what was paid for it.
    const entry = Number(usdcToPolygon.amount) / Number(event.data.amount)
    assert.ok(Math.abs(Number(bought?.avg_entry_price_usd) - entry) < 1e-9, JSON.stringify(bought))
    const late = shown.result.tx_hash
    const second = await outlasts(person, () => (truth) => ({
      ...truth,
      status: 'success',
      txHashes: [late],
    }))
    assert.deepEqual([second.status, second.outcome], ['completed', 'executed'], JSON.stringify(second))
    assert.notEqual(second.result.tx_hash, late)
  })

  test('native coins that a contract refunds are proven by balances where the node has no traces', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const sold = { chain_id_in: base, token_in: 'USDC', token_out: 'ETH', amount: '100000000' }
    const bought = await executed(person, sold)
    let refusals = 0
    node.replace({
      reply(call, { jsonrpc, id, ...answer }) {
        if (call.method !== 'debug_traceTransaction') return { jsonrpc, id, ...answer }
        refusals += 1
        return { jsonrpc, id, error: { code: -32601, message: 'the method does not exist' } }
      },
    })
    await world.solver('/force', { failReason: 'SOLVER_CAPACITY_EXCEEDED' })
    const amount = bought.result.amount_out
    const { body: done } = await swapOf(person, { ...usdcToPolygon, token_in: 'ETH', amount })
    assert.deepEqual([done.status, done.error?.code], ['failed', 'refunded'], JSON.stringify(done))
    assert.ok(refusals > 0, 'no trace was asked for')
    await assertMeasured(world, person, held, [bought, done])
  })

  test('a balance that a lagging node does not show yet is a reason to try again', async () => {
    const person = await createFundedPerson(gateway.url)
    const wanted = {
      chain_id_in: base,
      token_in: 'USDC',
      token_out: 'WETH',
      amount: '20000000',
      dryrun: true,
    }
    // The node answers as it was before the grant.
    node.replace({
      call: (call) =>
        call.method === 'eth_call'
          ? { ...call, params: [call.params[0], '0x1', ...call.params.slice(2)] }
          : call,
    })
    const early = await swapOf(person, wanted)
    const { code, retryable, available } = early.body as unknown as Record<string, unknown>
    assert.deepEqual([early.status, code, retryable, available], [503, 'unavailable', true, '0'])
    node.replace()
    assert.equal((await swapOf(person, wanted)).status, 200)
    const tooMuch = await swapOf(person, { ...wanted, amount: '10000000001' })
    assert.deepEqual([tooMuch.status, tooMuch.body.code], [409, 'insufficient_balance'])
  })

  test('a token that anybody can send is no refund', async () => {
    const person = await createFundedPerson(gateway.url)
    const issuer = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'
    const launched = '0x70ce000000000000000000000000000000000001'
    const to = person.evm.slice(2).toLowerCase().padStart(64, '0')
    const data = `0xa9059cbb${to}${'1'.padStart(64, '0')}`
    const done = await outlasts(person, async () => {
      const hash = (await world.rpc('eth_sendTransaction', [{ from: issuer, to: launched, data }])) as string
      await eventually(
        async () => ((await world.balance(base, person.evm, launched)) === 1n ? true : undefined),
        'the token has arrived',
      )
      return (truth) => ({ ...truth, status: 'refund', txHashes: [hash] })
    })
    assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
  })
})
