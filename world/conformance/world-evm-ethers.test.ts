/** ethers 6, unmodified, on the EVM chains. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  Contract,
  HDNodeWallet,
  JsonRpcProvider,
  NonceManager,
  parseEther,
  Wallet,
  WebSocketProvider,
} from 'ethers'
import { startWorld, type World } from '#world/world.ts'

const usdc = {
  '1': '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
  '8453': '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
} as const
const vault = '0xea12000000000000000000000000000000008453'
const abi = [
  'function balanceOf(address) view returns (uint256)',
  'function transfer(address to, uint256 amount) returns (bool)',
  'function approve(address spender, uint256 amount) returns (bool)',
  'function deposit(uint256 assets, address receiver) returns (uint256)',
  'function maxDeposit(address) view returns (uint256)',
  'function maxRedeem(address) view returns (uint256)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]

let dataDir = ''
let world: World
const providers: JsonRpcProvider[] = []

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'portico-ethers-'))
  world = await startWorld({ dataDir, port: 0 })
})

after(async () => {
  for (const provider of providers) provider.destroy()
  await world?.[Symbol.asyncDispose]()
  await rm(dataDir, { recursive: true, force: true })
})

const providerOf = (id: keyof typeof usdc) => {
  const provider = new JsonRpcProvider(world.urls.evm[id])
  providers.push(provider)
  return provider
}

const fund = async (chain_id: string, address: string, token: string, amount: string) => {
  const body = JSON.stringify({ chain_id, address, token, amount })
  const answer = await fetch(`${world.urls.control}/faucet/fund`, { method: 'POST', body })
  assert.equal(answer.status, 200)
}

for (const id of ['1', '8453'] as const)
  test(`a wallet sends coin and tokens on chain ${id}, and finds its events`, async () => {
    const provider = providerOf(id)
    assert.equal((await provider.getNetwork()).chainId, BigInt(id))
    const wallet = Wallet.createRandom(provider)
    const to = Wallet.createRandom().address
    await fund(id, wallet.address, 'native', '2')
    await fund(id, wallet.address, 'USDC', '100')
    const sender = new NonceManager(wallet)
    const sent = await sender.sendTransaction({ to, value: parseEther('0.5') })
    assert.equal((await sent.wait())?.status, 1)
    const token = new Contract(usdc[id], abi, sender)
    const receipt = await (await token.getFunction('transfer')(to, 40_000_000n)).wait()
    assert.equal(receipt?.status, 1)
    assert.equal(await token.getFunction('balanceOf')(to), 40_000_000n)
    assert.equal(await provider.getBalance(to), parseEther('0.5'))
    const events = await token.queryFilter(token.filters.Transfer?.(wallet.address, to) ?? 'Transfer')
    assert.equal(events.length, 1)
  })

test('the chains have different genesis blocks', async () => {
  const hashes = await Promise.all(
    Object.values(world.urls.evm).map(async (url) => {
      const provider = new JsonRpcProvider(url)
      providers.push(provider)
      return (await provider.getBlock(0))?.hash
    }),
  )
  assert.equal(new Set(hashes).size, 4)
})

test('the vault returns its limits of deposits and redemptions', async () => {
  const provider = providerOf('8453')
  const wallet = new NonceManager(HDNodeWallet.createRandom().connect(provider))
  const owner = await wallet.getAddress()
  await fund('8453', owner, 'native', '1')
  await fund('8453', owner, 'USDC', '50')
  const shares = new Contract(vault, abi, wallet)
  const token = new Contract(usdc['8453'], abi, wallet)
  assert.equal(await shares.getFunction('maxDeposit')(owner), 2n ** 256n - 1n)
  await (await token.getFunction('approve')(vault, 50_000_000n)).wait()
  await (await shares.getFunction('deposit')(50_000_000n, owner, { gasLimit: 500_000n })).wait()
  const held = await shares.getFunction('balanceOf')(owner)
  assert.ok(held > 0n)
  assert.equal(await shares.getFunction('maxRedeem')(owner), held)
})

test('state of more than 64 blocks ago can be read', async () => {
  const provider = providerOf('1')
  const address = Wallet.createRandom().address
  const before = await provider.getBlockNumber()
  await fund('1', address, 'native', '1')
  await provider.send('anvil_mine', ['0x60'])
  assert.equal(await provider.getBalance(address, before), 0n)
  assert.equal(await provider.getBalance(address), parseEther('1'))
})

test('a socket delivers blocks', async (t) => {
  const unsubscribed = Promise.withResolvers<void>()
  class Socket extends WebSocketProvider {
    override async send(method: string, params: unknown[]): Promise<unknown> {
      const result: unknown = await super.send(method, params)
      if (method === 'eth_unsubscribe') unsubscribed.resolve()
      return result
    }
  }
  const socket = new Socket(world.urls.evm['1'].replace('http', 'ws'))
  t.after(() => socket.destroy())
  const seen = new Promise<number>((resolve) => {
    void socket.on('block', resolve)
  })
  const provider = providerOf('1')
  // The subscription is sent before the block exists.
  const timer = setInterval(() => void provider.send('evm_mine', []).catch(() => {}), 200)
  assert.ok((await seen.finally(() => clearInterval(timer))) > 0)
  // A request that is under way when the socket closes fails outside of the test.
  await socket.off('block')
  await unsubscribed.promise
})
