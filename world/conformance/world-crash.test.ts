/** Every process of the world killed at one moment: everything accepted is restored at the next start, to the unit. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ExchangeClient, HttpTransport, InfoClient } from '@nktkas/hyperliquid'
import { encodeFunctionData, type Hex, numberToHex, parseAbi } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { startWorld, type World } from '#world/world.ts'
import { eventually } from '../../test/harness/gateway.ts'
import { killAtOnce, processesOf } from '../../test/harness/processes.ts'

const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const bridgeUsdc = '0xaf88d065e77c8cC2239327C5EDb3A432268e5831'
const vault = '0xea12000000000000000000000000000000008453'
const bridge = '0x2Df1c51E09aECF9cacB7bc98cB1742757f163dF7'
const nobody = '0x000000000000000000000000000000000000dEaD'
const dollar = 1_000_000n
const abi = parseAbi([
  'function transfer(address to, uint256 amount) returns (bool)',
  'function approve(address spender, uint256 amount) returns (bool)',
  'function deposit(uint256 assets, address receiver) returns (uint256)',
  'function balanceOf(address) view returns (uint256)',
])
const linux = { skip: process.platform === 'linux' ? false : 'reads /proc' }

type ChainId = '8453' | '42161'
type Receipt = { status: Hex; blockNumber: Hex; transactionHash: Hex } | null

const clientOf = (world: World) => {
  const rpc = async (id: ChainId, method: string, params: unknown[] = []): Promise<unknown> => {
    const answer = await fetch(world.urls.evm[id], {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const { result, error } = (await answer.json()) as { result?: unknown; error?: { message: string } }
    if (error) throw new Error(`${method}: ${error.message}`)
    return result
  }
  const control = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const answer = await fetch(`${world.urls.control}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const reply = await answer.json()
    assert.equal(answer.status, 200, JSON.stringify(reply))
    return reply
  }
  const balance = async (id: ChainId, token: Hex, owner: Hex): Promise<bigint> => {
    const data = encodeFunctionData({ abi, functionName: 'balanceOf', args: [owner] })
    return BigInt((await rpc(id, 'eth_call', [{ to: token, data }, 'latest'])) as Hex)
  }
  return {
    rpc,
    control,
    balance,
    receipt: (id: ChainId, hash: Hex) => rpc(id, 'eth_getTransactionReceipt', [hash]) as Promise<Receipt>,
    fund: (id: ChainId, address: Hex, token: string, amount: string) =>
      control('POST', '/faucet/fund', { chain_id: id, address, token, amount }),
    native: async (id: ChainId, owner: Hex) =>
      BigInt((await rpc(id, 'eth_getBalance', [owner, 'latest'])) as Hex),
  }
}

type Sent = { to: Hex; nonce: number; data?: Hex; value?: bigint }
const signed = (id: ChainId, from: PrivateKeyAccount, { to, nonce, data, value }: Sent): Promise<Hex> =>
  from.signTransaction({
    chainId: Number(id),
    type: 'eip1559',
    to,
    nonce,
    gas: 400_000n,
    maxFeePerGas: 50_000_000_000n,
    maxPriorityFeePerGas: 1_000_000_000n,
    ...(data === undefined ? {} : { data }),
    ...(value === undefined ? {} : { value }),
  })

const newcomer = () => privateKeyToAccount(generatePrivateKey())

const folderOf = async (t: TestContext): Promise<string> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'portico-killed-'))
  t.after(() => rm(dataDir, { recursive: true, force: true, maxRetries: 3 }))
  return dataDir
}

type Parts = Pick<Parameters<typeof startWorld>[0], 'only'>
const start = async (t: TestContext, dataDir: string, parts: Parts = {}): Promise<World> => {
  const world = await startWorld({ dataDir, port: 0, ...parts })
  t.after(() => world[Symbol.asyncDispose]())
  return world
}

test(
  'everything that a chain answered is restored after every process was killed, in the same blocks',
  linux,
  async (t) => {
    const dataDir = await folderOf(t)
    let world = await start(t, dataDir)
    let client = clientOf(world)
    const [one, two, three] = [newcomer(), newcomer(), newcomer()]
    const senders = [one, two, three]
    for (const { address } of senders) {
      await client.fund('8453', address, 'native', '1')
      await client.fund('8453', address, 'USDC', '1000')
    }
    const send = async (from: PrivateKeyAccount, sent: Sent) =>
      (await client.rpc('8453', 'eth_sendRawTransaction', [await signed('8453', from, sent)])) as Hex
    const data = encodeFunctionData({ abi, functionName: 'approve', args: [vault, 1_000n * dollar] })
    for (const sender of senders) await send(sender, { to: usdc, nonce: 0, data })
    const deposit = (owner: Hex) =>
      encodeFunctionData({ abi, functionName: 'deposit', args: [dollar + 7n, owner] })

    for (const round of [0, 1, 2]) {
      const pids = processesOf(dataDir)
      assert.equal(pids.length, 7, 'the world, four chains, Solana and the venue')
      const [grants, cheated] = [newcomer().address, newcomer().address]
      const hashes: Hex[] = []
      const sendMany = async (from: PrivateKeyAccount) => {
        for (let nonce = 1 + round * 10; nonce < 11 + round * 10; nonce++)
          hashes.push(
            nonce % 2 === 0
              ? await send(from, { to: nobody, nonce, value: 3n })
              : await send(from, { to: vault, nonce, data: deposit(from.address) }),
          )
      }
      await Promise.all([sendMany(one), sendMany(two)])
      await client.fund('8453', grants, 'USDC', '12.5')
      await client.rpc('8453', 'anvil_setBalance', [cheated, numberToHex(41n)])
      hashes.push(await send(three, { to: cheated, nonce: 1 + round, value: 1n }))
      const seen = async () => {
        const receipts = await Promise.all(hashes.map((hash) => client.receipt('8453', hash)))
        return {
          receipts: receipts.map((each) => [each?.transactionHash, each?.status, each?.blockNumber]),
          gifted: await client.balance('8453', usdc, grants),
          cheated: await client.native('8453', cheated),
          dollars: await Promise.all(senders.map(({ address }) => client.balance('8453', usdc, address))),
          coins: await Promise.all(senders.map(({ address }) => client.native('8453', address))),
          shares: await Promise.all(senders.map(({ address }) => client.balance('8453', vault, address))),
        }
      }
      const before = await seen()
      await killAtOnce(pids)
      world = await start(t, dataDir)
      client = clientOf(world)
      assert.deepEqual(await seen(), before, `round ${round}`)
      assert.ok(before.receipts.every(([, status]) => status === '0x1'))
      assert.equal(before.cheated, 42n)
      assert.equal(before.gifted, 12_500_000n)
    }
  },
)

test(
  'a deposit that a reorganisation moved to a later block is worth the same shares after a kill',
  linux,
  async (t) => {
    const dataDir = await folderOf(t)
    let world = await start(t, dataDir, { only: ['8453'] })
    let client = clientOf(world)
    const owner = newcomer()
    await client.fund('8453', owner.address, 'native', '1')
    await client.fund('8453', owner.address, 'USDC', '1000')
    const send = async (sent: Sent) =>
      (await client.rpc('8453', 'eth_sendRawTransaction', [await signed('8453', owner, sent)])) as Hex
    const approve = encodeFunctionData({ abi, functionName: 'approve', args: [vault, 1_000n * dollar] })
    await send({ to: usdc, nonce: 0, data: approve })
    const data = encodeFunctionData({ abi, functionName: 'deposit', args: [100n * dollar, owner.address] })
    const shares = () => client.balance('8453', vault, owner.address)
    for (const nonce of [1, 2]) {
      // By an empty block, which is removed with that of the deposit: the block before them is a minute old.
      await client.control('POST', '/time', { advance_seconds: 60 })
      const hash = await send({ to: vault, nonce, data })
      const first = await shares()
      await client.control('POST', '/chains/8453/reorg', { depth: 2, remine_after_ms: 2_100 })
      const seen = async () => [await shares(), (await client.receipt('8453', hash))?.blockNumber]
      const before = await seen()
      assert.ok(first > (before[0] as bigint), 'the later block gives fewer shares')
      await killAtOnce(processesOf(dataDir))
      world = await start(t, dataDir, { only: ['8453'] })
      client = clientOf(world)
      assert.deepEqual(await seen(), before)
    }
  },
)

const traderOf = (world: World, wallet: PrivateKeyAccount) => {
  const transport = new HttpTransport({ apiUrl: world.urls.hyperliquid, rpcUrl: world.urls.hyperliquid })
  const info = new InfoClient({ transport })
  return {
    exchange: new ExchangeClient({ transport, wallet }),
    deposits: async () => {
      const updates = await info.userNonFundingLedgerUpdates({ user: wallet.address })
      return updates.map(({ delta }) => [delta.type, 'usdc' in delta ? delta.usdc : ''])
    },
    withdrawable: async () => (await info.clearinghouseState({ user: wallet.address })).withdrawable,
  }
}

for (const during of ['idle blocks', 'a reorganisation'])
  test(
    `a deposit and withdrawals in progress at the bridge are booked once, killed during ${during}`,
    linux,
    async (t) => {
      const dataDir = await folderOf(t)
      let world = await start(t, dataDir)
      let client = clientOf(world)
      const trader = newcomer()
      await client.fund('42161', trader.address, 'native', '1')
      await client.fund('42161', trader.address, 'USDC', '1000')
      const pay = async (nonce: number, amount: bigint) => {
        const data = encodeFunctionData({ abi, functionName: 'transfer', args: [bridge, amount] })
        const raw = await signed('42161', trader, { to: bridgeUsdc, nonce, data })
        return (await client.rpc('42161', 'eth_sendRawTransaction', [raw])) as Hex
      }
      await pay(0, 300n * dollar)
      const first = traderOf(world, trader)
      await eventually(async () => (await first.withdrawable()) === '300.0' || undefined, 'the first deposit')
      const reorganise = () =>
        during === 'idle blocks'
          ? Promise.resolve(undefined)
          : client
              .control('POST', '/chains/42161/reorg', { depth: 3, remine_after_ms: 400 })
              .catch(() => undefined)

      const destinations: Hex[] = []
      for (const round of [0, 1, 2, 3]) {
        const venue = traderOf(world, trader)
        const pids = processesOf(dataDir)
        const destination = newcomer().address
        destinations.push(destination)
        await venue.exchange.withdraw3({ destination, amount: '11' })
        // From the request to its payout it takes up to half a second: each round kills at another point of it.
        await new Promise((resolve) => setTimeout(resolve, round * 150))
        const vanishing = reorganise()
        await pay(round + 1, 20n * dollar)
        await killAtOnce(pids)
        await vanishing
        world = await start(t, dataDir)
        client = clientOf(world)
      }
      const venue = traderOf(world, trader)
      const arrived = async () =>
        (await Promise.all(destinations.map((each) => client.balance('42161', bridgeUsdc, each)))).map(Number)
      const expected = destinations.map(() => 10_000_000)
      await eventually(async () => (await arrived()).every((each) => each > 0) || undefined, 'all payouts')
      await eventually(async () => (await venue.withdrawable()) === '336.0' || undefined, 'all deposits')
      await client.control('POST', '/venues/hyperliquid/bridge/scan', {})
      await client.control('POST', '/venues/hyperliquid/bridge/scan', {})
      assert.deepEqual(await arrived(), expected)
      assert.equal(await venue.withdrawable(), '336.0')
      const deposits = (await venue.deposits()).filter(([type]) => type === 'deposit')
      assert.deepEqual(deposits.sort(), [
        ['deposit', '20.0'],
        ['deposit', '20.0'],
        ['deposit', '20.0'],
        ['deposit', '20.0'],
        ['deposit', '300.0'],
      ])
      assert.equal(await client.balance('42161', bridgeUsdc, trader.address), 620n * dollar)
      const { payouts } = (await client.control('GET', '/venues/hyperliquid/effects')) as {
        payouts: { hash: Hex }[]
      }
      for (const { hash } of payouts) assert.equal((await client.receipt('42161', hash))?.status, '0x1')
    },
  )
