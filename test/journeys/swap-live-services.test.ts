/** What live providers and chains do and the local ones do not: a swap ends all the same, with what the chains show. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { encodeFunctionData, parseAbi } from 'viem'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { processWorld } from '../harness/process-world.ts'
import { apiProxy, nodeProxy } from '../harness/service-proxies.ts'
import { createFundedPerson, executed, type SwapBody, solanaHeld, swapOf } from './swap-users.ts'
import type { Person } from './users.ts'
import { arbitrum, base, polygon, solana, type World, worldOf } from './world.ts'

const multicall3 = '0xcA11bde05977b3631167028862bE2a173976CA11'
const abi = parseAbi([
  'function transfer(address to, uint256 units) returns (bool)',
  'function deposit() payable',
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'function aggregate3(Call3[] calls) payable returns (bytes[])',
])
const hex = (text: string) => text as `0x${string}`
const transfer = (to: string, units: bigint) =>
  encodeFunctionData({ abi, functionName: 'transfer', args: [hex(to), units] })

describe('live services', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let relay: Awaited<ReturnType<typeof apiProxy>>
  let lifi: Awaited<ReturnType<typeof apiProxy>>
  const nodes: Record<string, Awaited<ReturnType<typeof nodeProxy>>> = {}
  before(async () => {
    const urls = await processWorld()
    relay = await apiProxy(urls.solver)
    lifi = await apiProxy(urls.lifi)
    for (const id of ['8453', '42161', '137'] as const) nodes[id] = await nodeProxy(urls.evm[id])
    nodes[solana] = await nodeProxy(urls.solana)
    gateway = await freshGateway({
      RELAY_URL: relay.url,
      LIFI_URL: lifi.url,
      BASE_RPC_URL: nodes[base]!.url,
      ARBITRUM_RPC_URL: nodes[arbitrum]!.url,
      POLYGON_RPC_URL: nodes[polygon]!.url,
      SOLANA_RPC_URL: nodes[solana]!.url,
    })
    world = await worldOf(gateway.world)
  })
  afterEach(() => {
    relay.replace()
    lifi.replace()
    for (const node of Object.values(nodes)) node.replace()
  })
  after(async () => {
    // The books are not audited: payments of these tests reach users outside of their tasks.
    await gateway?.kill()
    await gateway?.[Symbol.asyncDispose]()
    for (const each of [relay, lifi, ...Object.values(nodes)]) await each?.[Symbol.asyncDispose]()
  })

  type Id = '42161' | '137'
  const send = async (chainId: Id, tx: object): Promise<string> => {
    const url = world.manifest.urls.evm[chainId]
    const [from] = (await world.rpc('eth_accounts', [], url)) as string[]
    const hash = (await world.rpc('eth_sendTransaction', [{ from, ...tx }], url)) as string
    await eventually(
      async () => ((await world.rpc('eth_getTransactionReceipt', [hash], url)) === null ? undefined : true),
      'mined',
    )
    return hash
  }
  const bridge = { chain_id_in: base, token_in: 'USDC', token_out: 'USDC', amount: '50000000' }
  const isSettling = (person: Person, id: string) =>
    eventually(
      async () => ((await person.task(id)).state === 'settling' ? true : undefined),
      'settling',
      20_000,
    )
  /** The task as it is after some seconds, or once it has ended. */
  const watched = async (person: Person, id: string, seconds = 20) => {
    const until = Date.now() + seconds * 1_000
    for (;;) {
      const task = (await person.task(id)) as unknown as SwapBody
      if (!['pending', 'running'].includes(task.status) || Date.now() > until) return task
      await delay(200)
    }
  }
  const only = (provider: 'relay' | 'lifi') => {
    const refused = { status: 503, body: { message: 'away' } }
    return provider === 'lifi'
      ? relay.replace((path) => (path.startsWith('/quote') ? refused : undefined))
      : lifi.replace((path) => (path.startsWith('/v1/quote') ? refused : undefined))
  }
  test('a transfer of LI.FI that paid an intermediate token ends its swap and names what arrived', async () => {
    const person = await createFundedPerson(gateway.url)
    only('lifi')
    lifi.replace((path, truth) =>
      path.startsWith('/v1/status')
        ? { body: { ...truth, status: 'PENDING', substatus: 'WAIT_DESTINATION_TRANSACTION' } }
        : undefined,
    )
    const { body } = await swapOf(person, { ...bridge, chain_id_out: arbitrum }, { query: '' })
    await isSettling(person, body.task_id)
    const weth = world.tokenOn(arbitrum, 'WETH')
    // Worth the deposit at any price that the world shows.
    const units = 2n * 10n ** 16n
    await send(arbitrum, {
      to: weth,
      value: `0x${units.toString(16)}`,
      data: encodeFunctionData({ abi, functionName: 'deposit' }),
    })
    const txHash = await send(arbitrum, { to: weth, data: transfer(person.evm, units) })
    lifi.replace((path, truth) =>
      path.startsWith('/v1/status')
        ? {
            body: {
              ...truth,
              status: 'DONE',
              substatus: 'PARTIAL',
              receiving: {
                txHash,
                chainId: Number(arbitrum),
                amount: String(units),
                token: { address: weth, chainId: Number(arbitrum), symbol: 'WETH', decimals: 18 },
              },
            },
          }
        : undefined,
    )
    const done = await watched(person, body.task_id)
    assert.ok(lifi.replaced() > 0)
    assert.notEqual(done.status, 'running')
    assert.equal(done.outcome, 'partial')
  })

  for (const isRefused of [false, true])
    test(`a refund${isRefused ? ' whose reasons are refused, as with a revoked key,' : ''} ends its swap`, async () => {
      const person = await createFundedPerson(gateway.url)
      only('relay')
      await world.solver('/force', { failReason: 'SLIPPAGE' })
      relay.replace((path) =>
        isRefused && path.startsWith('/requests')
          ? { status: 401, body: { errorCode: 'UNAUTHORIZED', message: 'Invalid API key' } }
          : undefined,
      )
      const { body } = await swapOf(person, { ...bridge, chain_id_out: polygon }, { query: '' })
      const ended = await watched(person, body.task_id, 20)
      assert.equal(ended.error?.code, 'refunded')
    })

  test('one transaction of the filler pays two swaps of one user: both end, each with its own amount', async () => {
    const person = await createFundedPerson(gateway.url)
    only('relay')
    relay.replace((path, truth) =>
      path.startsWith('/intents/status')
        ? { body: { ...truth, status: 'pending', txHashes: [] } }
        : undefined,
    )
    const swaps = []
    for (let n = 0; n < 2; n += 1) {
      const { body } = await swapOf(person, { ...bridge, chain_id_out: polygon }, { query: '' })
      swaps.push(body.task_id)
      await isSettling(person, body.task_id)
    }
    const usdc = world.tokenOn(polygon, 'USDC')
    await world.fund(polygon, multicall3, 'USDC', '200')
    const paid = 49_900_000n
    const call = { target: hex(usdc), allowFailure: false, callData: transfer(person.evm, paid) }
    const hash = await send(polygon, {
      to: multicall3,
      data: encodeFunctionData({ abi, functionName: 'aggregate3', args: [[call, call]] }),
    })
    relay.replace((path, truth) =>
      path.startsWith('/intents/status')
        ? { body: { ...truth, status: 'success', txHashes: [hash] } }
        : undefined,
    )
    const ends = await Promise.all(swaps.map((id) => watched(person, id)))
    assert.deepEqual(
      ends.map(({ result }) => result?.amount_out),
      [String(paid), String(paid)],
    )
  })

  test('a fill ends its swap where the clock of Solana is two minutes behind', async () => {
    const person = await createFundedPerson(gateway.url)
    nodes[solana]!.replace({
      reply(call, reply) {
        const found = reply.result as { blockTime: number } | null
        if (call.method !== 'getTransaction' || !found) return reply
        return { ...reply, result: { ...found, blockTime: found.blockTime - 120 } }
      },
    })
    const { body } = await swapOf(person, { ...bridge, chain_id_out: 'solana' }, { query: '' })
    const done = await watched(person, body.task_id)
    assert.equal(done.outcome, 'executed')
  })

  test('a fill ends its swap where the clock of an EVM chain is two minutes behind', async () => {
    const person = await createFundedPerson(gateway.url)
    nodes[polygon]!.replace({
      reply(call, reply) {
        const block = reply.result as { timestamp: string } | null
        if (call.method !== 'eth_getBlockByNumber' || !block) return reply
        const timestamp = `0x${(Number(block.timestamp) - 120).toString(16)}`
        return { ...reply, result: { ...block, timestamp } }
      },
    })
    const { body } = await swapOf(person, { ...bridge, chain_id_out: polygon }, { query: '' })
    const done = await watched(person, body.task_id)
    assert.equal(done.outcome, 'executed')
  })

  test('a fill in a block that was reorganised away ends no swap, and the one that replaces it does', async () => {
    const person = await createFundedPerson(gateway.url)
    let shown = 0
    nodes[polygon]!.replace({
      reply(call, reply) {
        const receipt = reply.result as { blockHash: string } | null
        if (call.method !== 'eth_getTransactionReceipt' || !receipt) return reply
        shown += 1
        return { ...reply, result: { ...receipt, blockHash: `0x${'de'.repeat(32)}` } }
      },
    })
    const { body } = await swapOf(person, { ...bridge, chain_id_out: polygon }, { query: '' })
    await eventually(async () => (shown > 2 ? true : undefined), 'receipts of the fork', 20_000)
    assert.equal((await person.task(body.task_id)).status, 'running')
    nodes[polygon]!.replace()
    assert.equal((await watched(person, body.task_id)).outcome, 'executed')
  })

  test('a refund on the chain of the fill ends its swap, and says where the money is', async () => {
    const person = await createFundedPerson(gateway.url)
    only('relay')
    relay.replace((path, truth) => {
      if (!path.startsWith('/intents/status')) return undefined
      const { status } = truth as { status?: string }
      return status === 'success'
        ? { body: { ...truth, status: 'refund', failReason: 'SLIPPAGE' } }
        : undefined
    })
    const { body } = await swapOf(person, { ...bridge, chain_id_out: polygon }, { query: '' })
    const ended = await watched(person, body.task_id)
    assert.deepEqual([ended.outcome, ended.error?.code], ['partial', 'refunded'])
    assert.equal(ended.result?.refunded?.chain_id, polygon)
    assert.equal(ended.result?.failure_reason, 'slippage')
  })

  test('a token that pays interest to its sender is sold', async () => {
    const person = await createFundedPerson(gateway.url)
    const topic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
    const word = (text: string) => `0x${text.replace(/^0x/, '').toLowerCase().padStart(64, '0')}`
    nodes[base]!.replace({
      reply(call, reply) {
        const receipt = reply.result as { logs: { address: string; topics: string[] }[] } | null
        if (call.method !== 'eth_getTransactionReceipt' || !receipt) return reply
        const out = receipt.logs.find(
          ({ address, topics }) =>
            address.toLowerCase() === world.usdc.toLowerCase() &&
            topics[0] === topic &&
            topics[1] === word(person.evm),
        )
        if (!out) return reply
        const interest = {
          ...out,
          topics: [topic, word('0x0'), word(person.evm)],
          data: word('0x3'),
          logIndex: '0x3e7',
        }
        return { ...reply, result: { ...receipt, logs: [interest, ...receipt.logs] } }
      },
    })
    const { body } = await swapOf(
      person,
      { chain_id_in: base, token_in: 'USDC', token_out: 'WETH', amount: '25000000' },
      { query: '' },
    )
    const done = await watched(person, body.task_id)
    assert.equal(done.outcome, 'executed')
  })

  test('a deposit on Solana whose record the nodes have lost is not made again', async () => {
    const person = await createFundedPerson(gateway.url)
    await executed(person, { ...bridge, chain_id_out: 'solana', amount: '120000000' })
    const held = await solanaHeld(world, person.solana, 'USDC')
    const hidden = new Set<string>()
    const sent: string[] = []
    const ahead = 500
    nodes[solana]!.replace({
      call(call) {
        const config = call.params[1] as { minContextSlot?: number } | undefined
        if (hidden.size === 0 || config?.minContextSlot === undefined) return call
        const minContextSlot = config.minContextSlot - ahead
        return { ...call, params: call.params.with(1, { ...config, minContextSlot }) }
      },
      reply(call, reply) {
        const { method, params } = call
        const signature = method === 'sendTransaction' ? reply.result : undefined
        if (typeof signature === 'string' && !sent.includes(signature)) {
          if (sent.push(signature) === 1) hidden.add(signature)
        }
        if (hidden.size === 0) return reply
        // The gateway looks at it three minutes later.
        if (method === 'getEpochInfo') {
          const epoch = reply.result as { absoluteSlot: number; blockHeight: number }
          const absoluteSlot = epoch.absoluteSlot + ahead
          return { ...reply, result: { ...epoch, absoluteSlot, blockHeight: epoch.blockHeight + ahead } }
        }
        if (method === 'getSignatureStatuses') {
          const { context, value } = reply.result as { context: { slot: number }; value: unknown[] }
          const statuses = value.map((each, at) => (hidden.has((params[0] as string[])[at]!) ? null : each))
          return {
            ...reply,
            result: { context: { ...context, slot: context.slot + ahead }, value: statuses },
          }
        }
        if (method === 'getTransaction' && hidden.has(String(params[0]))) return { ...reply, result: null }
        return reply
      },
    })
    only('relay')
    const { body } = await swapOf(
      person,
      {
        chain_id_in: solana,
        chain_id_out: base,
        token_in: 'USDC',
        token_out: 'USDC',
        amount: '40000000',
        deadline_seconds: 3600,
      },
      { query: '' },
    )
    await eventually(
      async () => ((await person.task(body.task_id)).state === 'review' ? true : undefined),
      'a person decides',
      30_000,
    )
    assert.equal(sent.length, 1, 'one deposit is signed')
    assert.equal(await solanaHeld(world, person.solana, 'USDC'), held - 40_000_000n)
    nodes[solana]!.replace()
    const done = await watched(person, body.task_id, 40)
    assert.equal(done.outcome, 'executed')
  })

  test('a fee of Relay in another currency than the input refuses no quote', async () => {
    const person = await createFundedPerson(gateway.url)
    only('relay')
    relay.replace((path, truth) =>
      path.startsWith('/quote') && truth.fees?.relayer
        ? {
            body: {
              ...truth,
              fees: {
                ...truth.fees,
                relayer: {
                  ...truth.fees.relayer,
                  amount: '1000',
                  currency: { ...truth.fees.relayer.currency, address: `0x${'00'.repeat(20)}` },
                },
              },
            },
          }
        : undefined,
    )
    const { status, body } = await swapOf(person, { ...bridge, chain_id_out: polygon, dryrun: true })
    assert.equal(status, 200, JSON.stringify(body))
  })

  test('a minimum of Relay that is a unit low by rounding refuses no quote', async () => {
    const person = await createFundedPerson(gateway.url)
    lifi.replace((path) => (path.startsWith('/v1/quote') ? { status: 503, body: {} } : undefined))
    relay.replace((path, truth) => {
      const out = truth.details?.currencyOut
      if (!path.startsWith('/quote') || !out) return undefined
      const minimum = (BigInt(out.amount) * 9_900n) / 10_000n - 1n
      return {
        body: {
          ...truth,
          details: { ...truth.details, currencyOut: { ...out, minimumAmount: String(minimum) } },
        },
      }
    })
    const { status, body } = await swapOf(person, { ...bridge, chain_id_out: polygon, dryrun: true })
    assert.equal(status, 200, JSON.stringify(body))
  })
})
