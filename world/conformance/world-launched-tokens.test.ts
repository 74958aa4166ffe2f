import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  type Address,
  createTestClient,
  erc20Abi,
  type Hex,
  http,
  keccak256,
  parseAbi,
  parseEther,
  publicActions,
  toBytes,
  walletActions,
} from 'viem'
import { base } from 'viem/chains'
import type { World } from '#world/world.ts'
import { ownWorld } from '../../test/harness/own-world.ts'

const router: Address = '0x4752ba5DBc23f44D87826276BF6Fd6b1C372aD24'
const wrapped: Address = '0x4200000000000000000000000000000000000006'
const usdc: Address = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const issuer: Address = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'
const trader: Address = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const launched = (number: number): Address => `0x70ce00000000000000000000000000000000000${number}`

const routerAbi = parseAbi([
  'function getAmountsOut(uint256 amountIn, address[] path) view returns (uint256[])',
  'function swapExactETHForTokensSupportingFeeOnTransferTokens(uint256 amountOutMin, address[] path, address to, uint256 deadline) payable',
  'function swapExactTokensForETHSupportingFeeOnTransferTokens(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline)',
])
const tokenAbi = parseAbi([
  'function setSalesStopped(bool stopped)',
  'function setTaxes(uint256 buyBps, uint256 sellBps)',
])
const deadline = 2n ** 40n
/** An estimate sees the second of the last block, and the first trade of a second takes more. */
const gas = 1_000_000n

let world: World
const clientOf = ({ urls }: World) =>
  createTestClient({ chain: base, mode: 'anvil', transport: http(urls.evm[8453]) })
    .extend(publicActions)
    .extend(walletActions)
let client: ReturnType<typeof clientOf>

before(async () => {
  world = await ownWorld(['8453'])
  client = clientOf(world)
})
after(() => world[Symbol.asyncDispose]())

const mined = async (hash: Hex) => (await client.waitForTransactionReceipt({ hash })).status
const unitsOf = (token: Address, owner: Address) =>
  client.readContract({ address: token, abi: erc20Abi, functionName: 'balanceOf', args: [owner] })
const quoteOf = async (units: bigint, path: Address[]) =>
  (
    await client.readContract({
      address: router,
      abi: routerAbi,
      functionName: 'getAmountsOut',
      args: [units, path],
    })
  ).at(-1) as bigint

/** Buys for native coins; returns what arrived and what the pool quoted. */
const buy = async (path: Address[]) => {
  const token = path.at(-1) as Address
  const value = parseEther('0.1')
  const quoted = await quoteOf(value, path)
  const held = await unitsOf(token, trader)
  const hash = await client.writeContract({
    account: trader,
    address: router,
    abi: routerAbi,
    functionName: 'swapExactETHForTokensSupportingFeeOnTransferTokens',
    args: [0n, path, trader, deadline],
    value,
    gas,
  })
  assert.equal(await mined(hash), 'success')
  return { got: (await unitsOf(token, trader)) - held, quoted }
}

const sell = async (path: Address[], units: bigint) => {
  const token = path[0] as Address
  const approved = await client.writeContract({
    account: trader,
    address: token,
    abi: erc20Abi,
    functionName: 'approve',
    args: [router, units],
  })
  await mined(approved)
  const quoted = await quoteOf(units, path)
  const { result: _, request } = await client.simulateContract({
    account: trader,
    address: router,
    abi: routerAbi,
    functionName: 'swapExactTokensForETHSupportingFeeOnTransferTokens',
    args: [units, 0n, path, trader, deadline],
    gas,
  })
  const held = await client.getBalance({ address: trader })
  const hash = await client.writeContract(request)
  const { gasUsed, effectiveGasPrice } = await client.waitForTransactionReceipt({ hash })
  const got = (await client.getBalance({ address: trader })) - held + gasUsed * effectiveGasPrice
  return { got, quoted }
}

/** Hundredths of a percent that are missing, rounded. */
const missingBps = ({ got, quoted }: { got: bigint; quoted: bigint }) =>
  Math.round(Number(((quoted - got) * 1_000_000n) / quoted) / 100)

test('a fair token is bought and sold for what its pool quotes', async () => {
  const bought = await buy([wrapped, usdc, launched(1)])
  assert.equal(bought.got, bought.quoted)
  const sold = await sell([launched(1), usdc, wrapped], bought.got)
  assert.equal(sold.got, sold.quoted)
})

test('taxes are taken from both sides, and only the owner changes them', async () => {
  const mild = await buy([wrapped, launched(2)])
  assert.equal(missingBps(mild), 100)
  assert.ok(Math.abs(missingBps(await sell([launched(2), wrapped], mild.got)) - 200) <= 2)
  const heavy = await buy([wrapped, usdc, launched(3)])
  assert.equal(missingBps(heavy), 300)
  assert.ok(Math.abs(missingBps(await sell([launched(3), usdc, wrapped], heavy.got)) - 2_500) <= 5)
  const change = { address: launched(3), abi: tokenAbi, functionName: 'setTaxes', args: [0n, 0n] } as const
  await assert.rejects(client.simulateContract({ ...change, account: trader }), /NotOwner|0x30cd7471/)
  assert.equal(await mined(await client.writeContract({ ...change, account: issuer })), 'success')
  const freed = await buy([wrapped, usdc, launched(3)])
  assert.equal(freed.got, freed.quoted)
})

test('the owner of a fair token stops its sales', async () => {
  const path = [wrapped, usdc, launched(4)]
  const { got } = await buy(path)
  await sell(path.toReversed(), got / 2n)
  const stop = await client.writeContract({
    account: issuer,
    address: launched(4),
    abi: tokenAbi,
    functionName: 'setSalesStopped',
    args: [true],
  })
  assert.equal(await mined(stop), 'success')
  await assert.rejects(sell(path.toReversed(), got / 4n), /TRANSFER_FROM_FAILED/)
  const again = await buy(path)
  assert.equal(again.got, again.quoted)
})

test('the code of a proxy token is replaced by its administrator', async () => {
  const bought = await buy([wrapped, usdc, launched(5)])
  assert.equal(bought.got, bought.quoted)
  const upgrade = {
    address: launched(5),
    abi: parseAbi(['function upgradeTo(address implementation)']),
    functionName: 'upgradeTo',
    args: [usdc],
  } as const
  await assert.rejects(client.simulateContract({ ...upgrade, account: trader }))
  assert.equal(await mined(await client.writeContract({ ...upgrade, account: issuer })), 'success')
  assert.equal(
    await client.readContract({ address: launched(5), abi: erc20Abi, functionName: 'symbol' }),
    'USDC',
  )
})

test('an older proxy and a diamond trade as their code does, and the slots of newer proxies are empty', async () => {
  const diamond: Address = `0x70ce${'a'.padStart(36, '0')}`
  for (const token of [launched(9), diamond]) {
    const bought = await buy([wrapped, usdc, token])
    assert.equal(bought.got, bought.quoted)
    const sold = await sell([token, usdc, wrapped], bought.got)
    assert.equal(sold.got, sold.quoted)
    const slot = '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc'
    assert.equal(BigInt((await client.getStorageAt({ address: token, slot })) ?? '0x0'), 0n)
  }
  const code = await client.getStorageAt({ address: launched(9), slot: keccak256(toBytes('PROXIABLE')) })
  assert.notEqual(BigInt(code ?? '0x0'), 0n)
  const abi = parseAbi([
    'function facetAddress(bytes4 selector) view returns (address)',
    'function facetAddresses() view returns (address[])',
  ])
  const loupe = { address: diamond, abi } as const
  const facetOf = (selector: Hex) =>
    client.readContract({ ...loupe, functionName: 'facetAddress', args: [selector] })
  const [facet] = await client.readContract({ ...loupe, functionName: 'facetAddresses' })
  assert.equal(await facetOf('0xa9059cbb'), facet)
  assert.equal(BigInt(await facetOf('0xffffffff')), 0n)
})

test('a token without a pool has no quote, and one with a cooldown takes one transfer per block', async () => {
  await assert.rejects(quoteOf(parseEther('0.1'), [wrapped, usdc, launched(6)]))
  const { got, quoted } = await buy([wrapped, usdc, launched(8)])
  assert.equal(got, quoted)
  const sold = await sell([launched(8), usdc, wrapped], got)
  assert.equal(sold.got, sold.quoted)
})
