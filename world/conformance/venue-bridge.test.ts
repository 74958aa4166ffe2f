import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createPublicClient, createTestClient, createWalletClient, http, parseAbi } from 'viem'
import { arbitrum } from 'viem/chains'
import { type Anvil, startAnvil } from '#world/evm/anvil.ts'
import { artifact } from '#world/evm/artifact.ts'
import { traderAt } from './venue/trader.ts'
import { accountOf, eventually, type RunningVenue, startVenue } from './venue/venue.ts'

const usdc = '0xaf88d065e77c8cC2239327C5EDb3A432268e5831'
const bridge = '0x2Df1c51E09aECF9cacB7bc98cB1742757f163dF7'
const abi = parseAbi([
  'function mint(address to, uint256 amount)',
  'function transfer(address to, uint256 amount) returns (bool)',
  'function balanceOf(address) view returns (uint256)',
])

let node: Anvil
let folder: string
let venue: RunningVenue
let rpc: string

const clients = () => {
  const transport = http(rpc)
  return {
    chain: createPublicClient({ chain: arbitrum, transport, pollingInterval: 20 }),
    cheat: createTestClient({ chain: arbitrum, transport, mode: 'anvil' }),
    wallet: (number: number) =>
      createWalletClient({ chain: arbitrum, transport, account: accountOf(number) }),
  }
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'venue-chain-'))
  node = await startAnvil({
    chainId: '42161',
    pidFile: join(folder, 'pid'),
    exitFile: join(folder, 'exit.json'),
  })
  rpc = `http://${node.host}:${node.port}`
  const { cheat } = clients()
  await cheat.setCode({ address: usdc, bytecode: artifact('LocalUsdc').runtime })
  for (const number of [401, 402])
    await cheat.setBalance({ address: accountOf(number).address, value: 10n ** 18n })
  venue = await startVenue(['--arbitrum-rpc', rpc, '--bridge-ms', '50'])
})

after(async () => {
  await venue?.close()
  await node?.child.stop('SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

const pay = async (number: number, amount: bigint): Promise<void> => {
  const { chain, wallet } = clients()
  const sender = wallet(number)
  for (const call of [
    { functionName: 'mint', args: [accountOf(number).address, amount] } as const,
    { functionName: 'transfer', args: [bridge, amount] } as const,
  ]) {
    const hash = await sender.writeContract({ address: usdc, abi, ...call })
    await chain.waitForTransactionReceipt({ hash })
  }
}

const usdcOf = (address: `0x${string}`): Promise<bigint> =>
  clients().chain.readContract({ address: usdc, abi, functionName: 'balanceOf', args: [address] })

test('USDC sent to the bridge is credited once, also over a kill', async () => {
  const trader = await traderAt(venue, 401, '0')
  const withdrawable = async () => (await trader.info.clearinghouseState({ user: trader.user })).withdrawable
  await pay(401, 125_500_000n)
  await eventually('the deposit', async () => (await withdrawable()) === '125.5' || undefined)
  await venue.restart()
  await venue.control('POST', '/bridge/scan')
  await venue.control('POST', '/bridge/scan')
  assert.equal(await withdrawable(), '125.5')
  const ledger = await trader.info.userNonFundingLedgerUpdates({ user: trader.user })
  assert.deepEqual(
    ledger.map(({ delta }) => delta),
    [{ type: 'deposit', usdc: '125.5' }],
  )
  assert.deepEqual(await trader.info.userRole({ user: trader.user }), { role: 'user' })
})

test('a deposit below five dollars is lost, as upstream documents', async () => {
  const trader = await traderAt(venue, 402, '0')
  await pay(402, 4_999_999n)
  await venue.control('POST', '/bridge/scan')
  assert.deepEqual(await trader.info.userRole({ user: trader.user }), { role: 'missing' })
  const { conservation } = await venue.control<{ conservation: { perp: string } }>('GET', '/effects')
  assert.equal(conservation.perp, '0.0')
})

test('a withdrawal arrives on the chain, once, less a dollar', async () => {
  const trader = await traderAt(venue, 401, '0')
  const destination = accountOf(403).address.toLowerCase() as `0x${string}`
  await trader.exchange.withdraw3({ destination, amount: '26' })
  await eventually('the payout', async () => (await usdcOf(destination)) > 0n || undefined)
  await venue.restart()
  await venue.control('POST', '/bridge/scan')
  assert.equal(await usdcOf(destination), 25_000_000n)
  const { payouts } = await venue.control<{ payouts: { amount: string; hash: string | null }[] }>(
    'GET',
    '/effects',
  )
  assert.deepEqual(
    payouts.map(({ amount, hash }) => [amount, hash?.length]),
    [['25.0', 66]],
  )
})
