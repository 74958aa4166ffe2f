import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import {
  type Abi,
  type Address,
  createPublicClient,
  createWalletClient,
  encodeAbiParameters,
  encodeFunctionData,
  erc20Abi,
  erc4626Abi,
  getAddress,
  type Hex,
  http,
  keccak256,
  pad,
  parseAbi,
  parseEther,
  parseUnits,
} from 'viem'
import {
  generatePrivateKey,
  mnemonicToAccount,
  type PrivateKeyAccount,
  privateKeyToAccount,
} from 'viem/accounts'
import { arbitrum, base, mainnet, polygon } from 'viem/chains'
import { addressOfContract, contractFiles } from '#world/polymarket/chain/artifacts.ts'
import { startWorld, type World, type WorldUrls } from '#world/world.ts'

type ChainKey = keyof WorldUrls['evm']

const usdc: Address = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const vault: Address = '0xea12000000000000000000000000000000008453'
const executor: Address = '0x000000009B1D0aF20D8C6d0A44e162d11F9b8f00'
const router: Address = '0x4752ba5DBc23f44D87826276BF6Fd6b1C372aD24'
const weth: Address = '0x4200000000000000000000000000000000000006'
const dai: Address = '0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb'
const dollar = 1_000_000n

const permitAbi = parseAbi([
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
  'function nonces(address owner) view returns (uint256)',
  'function mint(address to, uint256 amount)',
])
const routerAbi = parseAbi([
  'function getAmountsOut(uint256 amountIn, address[] path) view returns (uint256[])',
  'function swapExactTokensForTokens(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline) returns (uint256[])',
  'function swapExactETHForTokens(uint256 amountOutMin, address[] path, address to, uint256 deadline) payable returns (uint256[])',
])
const executorAbi = parseAbi([
  'struct Call { address to; uint256 value; bytes data; }',
  'struct BatchedCall { Call[] calls; bool revertOnFailure; }',
  'struct SignedBatchedCall { BatchedCall batchedCall; uint256 nonce; bytes32 keyHash; address executor; uint256 deadline; }',
  'function execute(SignedBatchedCall signedBatchedCall, bytes wrappedSignature) payable',
  'function getSeq(uint256 key) view returns (uint256)',
  'function isValidSignature(bytes32 digest, bytes signature) view returns (bytes4)',
  'error CallFailed(bytes reason)',
  'error InvalidNonce()',
  'error InvalidSignature()',
  'error SignatureExpired()',
  'error Unauthorized()',
])
const batchTypes = {
  SignedBatchedCall: [
    { name: 'batchedCall', type: 'BatchedCall' },
    { name: 'nonce', type: 'uint256' },
    { name: 'keyHash', type: 'bytes32' },
    { name: 'executor', type: 'address' },
    { name: 'deadline', type: 'uint256' },
  ],
  BatchedCall: [
    { name: 'calls', type: 'Call[]' },
    { name: 'revertOnFailure', type: 'bool' },
  ],
  Call: [
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'data', type: 'bytes' },
  ],
} as const

let dataDir = ''
let parent: ChildProcess
let urls: WorldUrls
let worldId = ''
let world: World | undefined

const chains = { 1: mainnet, 8453: base, 42161: arbitrum, 137: polygon } as const
const reader = (id: ChainKey = '8453') =>
  createPublicClient({
    chain: chains[id],
    transport: http(urls.evm[id], { retryCount: 0, timeout: 5_000 }),
    pollingInterval: 20,
    cacheTime: 0,
  })
const wallet = (account: PrivateKeyAccount | ReturnType<typeof mnemonicToAccount>) =>
  createWalletClient({
    account,
    chain: base,
    transport: http(urls.evm['8453'], { retryCount: 0, timeout: 5_000 }),
  })
const funded = (index: number) =>
  mnemonicToAccount('test test test test test test test test test test test junk', { addressIndex: index })
const newcomer = () => privateKeyToAccount(generatePrivateKey())

type Answer = { status: number; body: ReturnType<typeof JSON.parse> }
const callControl = async (method: string, path: string, body?: unknown): Promise<Answer> => {
  const answer = await fetch(`${urls.control}${path}`, {
    method,
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  return { status: answer.status, body: await answer.json() }
}
const ok = async (method: string, path: string, body?: unknown) => {
  const { status, body: reply } = await callControl(method, path, body)
  assert.equal(status, 200, JSON.stringify(reply))
  return reply
}

const until = async (what: string, holds: () => Promise<boolean>, timeoutMs = 30_000) => {
  const deadline = Date.now() + timeoutMs
  while (!(await holds().catch(() => false))) {
    assert.ok(Date.now() < deadline, `${what} did not happen in ${timeoutMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

const waitForReceipt = async (hash: Hex) => {
  const receipt = await reader().waitForTransactionReceipt({ hash, timeout: 5_000 })
  assert.equal(receipt.status, 'success')
  return receipt
}
const balance = (token: Address, address: Address, id: ChainKey = '8453') =>
  reader(id).readContract({ address: token, abi: erc20Abi, functionName: 'balanceOf', args: [address] })
const send = async (
  account: ReturnType<typeof funded>,
  address: Address,
  abi: Abi,
  functionName: string,
  args: unknown[],
) =>
  // An estimate of this second is too low in the next one, when the vault has growth to write.
  waitForReceipt(
    await wallet(account).writeContract({ address, abi, functionName, args, gas: 1_000_000n } as never),
  )
const headSeconds = async () => (await reader().getBlock()).timestamp

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'portico-world-'))
  const entry = new URL('../world.ts', import.meta.url).href
  const script = `const { startWorld } = await import(${JSON.stringify(entry)})
    const world = await startWorld({ dataDir: process.argv[1], port: 0 })
    console.log(JSON.stringify({ urls: world.urls, worldId: world.worldId }))
    setInterval(() => {}, 1000)`
  parent = spawn(process.execPath, ['--input-type=module', '-e', script, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  assert.ok(parent.stdout)
  const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string]
  ;({ urls, worldId } = JSON.parse(line) as { urls: WorldUrls; worldId: string })
})

after(async () => {
  parent?.kill('SIGKILL')
  await world?.[Symbol.asyncDispose]()
  await rm(dataDir, { recursive: true, force: true })
})

test('four chains answer under their real ids and the manifest names them', async () => {
  for (const id of ['1', '8453', '42161', '137'] as const)
    assert.equal(await reader(id).getChainId(), Number(id))
  const manifest = await ok('GET', '/')
  assert.equal(manifest.world_id, worldId)
  assert.deepEqual(manifest.urls, urls)
  assert.equal(manifest.contracts['8453'].vault, vault)
  for (const [id, tokens] of Object.entries(manifest.tokens) as [
    ChainKey,
    { address: Address; symbol: string; decimals: number }[],
  ][]) {
    if (!(id in chains)) continue
    const read = (address: Address, functionName: 'symbol' | 'decimals') =>
      reader(id).readContract({ address, abi: erc20Abi, functionName })
    const found = await Promise.all(
      tokens.flatMap(({ address }) => [read(address, 'symbol'), read(address, 'decimals')]),
    )
    assert.deepEqual(
      found,
      tokens.flatMap(({ symbol, decimals }) => [symbol, decimals]),
    )
  }
})

test('Polygon has the contracts of the prediction market, at the addresses of production', async () => {
  const codes = await Promise.all(
    contractFiles.map((file) => reader('137').getCode({ address: addressOfContract(file) })),
  )
  assert.deepEqual(
    contractFiles.filter((_, i) => codes[i] === undefined),
    [],
  )
  const read = { address: addressOfContract('PolymarketUsd'), abi: erc20Abi } as const
  assert.equal(await reader('137').readContract({ ...read, functionName: 'symbol' }), 'pUSD')
})

test('USDC has six digits, can be sent, and moves by a signed permit', async () => {
  const [owner, spender] = [newcomer(), funded(1)]
  await ok('POST', '/faucet/fund', {
    chain_id: '8453',
    address: owner.address,
    token: 'USDC',
    amount: '12.5',
  })
  assert.equal(await balance(usdc, owner.address), 12_500_000n)
  const domain = { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: usdc }
  const message = {
    owner: owner.address,
    spender: spender.address,
    value: 5n * dollar,
    nonce: 0n,
    deadline: 2n ** 60n,
  }
  const types = {
    Permit: ['owner', 'spender', 'value', 'nonce', 'deadline'].map((name) => ({
      name,
      type: ['owner', 'spender'].includes(name) ? 'address' : 'uint256',
    })),
  }
  const signature = await owner.signTypedData({ domain, types, primaryType: 'Permit', message })
  const [r, s, v] = [
    signature.slice(0, 66) as Hex,
    `0x${signature.slice(66, 130)}` as Hex,
    Number(`0x${signature.slice(130)}`),
  ]
  const permit = [message.owner, message.spender, message.value, message.deadline, v, r, s]
  await send(spender, usdc, permitAbi, 'permit', permit)
  await send(spender, usdc, erc20Abi, 'transferFrom', [owner.address, spender.address, 5n * dollar])
  await send(spender, usdc, erc20Abi, 'transfer', [owner.address, 2n * dollar])
  assert.equal(await balance(usdc, owner.address), 9_500_000n)
  await assert.rejects(send(spender, usdc, permitAbi, 'permit', permit), /PermitNotSigned|reverted/)
})

test('the vault accepts a deposit, grows by the set rate, and pays all of it back', async () => {
  const depositor = funded(2)
  await ok('POST', '/faucet/fund', {
    chain_id: '8453',
    address: depositor.address,
    token: 'USDC',
    amount: '1000',
  })
  const limit = (functionName: 'maxDeposit' | 'maxWithdraw') =>
    reader().readContract({ address: vault, abi: erc4626Abi, functionName, args: [depositor.address] })
  const price = async () => {
    const args = [10n ** 30n] as const
    return reader().readContract({ address: vault, abi: erc4626Abi, functionName: 'convertToAssets', args })
  }
  assert.equal(await limit('maxDeposit'), 2n ** 256n - 1n)
  await send(depositor, usdc, erc20Abi, 'approve', [vault, 1_000n * dollar])
  await send(depositor, vault, erc4626Abi, 'deposit', [1_000n * dollar, depositor.address])
  const [from, priceFrom] = [await headSeconds(), await price()]
  await ok('POST', '/time', { advance_seconds: 30 * 86_400 })
  const [to, priceTo] = [await headSeconds(), await price()]
  const yearly = (Number(priceTo) / Number(priceFrom)) ** ((365 * 86_400) / Number(to - from)) - 1
  assert.ok(Math.abs(yearly - 0.06) < 0.0001, `the yearly yield was ${yearly}`)
  assert.ok((await limit('maxWithdraw')) >= 1_000n * dollar)
  await send(depositor, vault, erc4626Abi, 'withdraw', [100n * dollar, depositor.address, depositor.address])
  await send(depositor, vault, erc4626Abi, 'redeem', [
    await balance(vault, depositor.address),
    depositor.address,
    depositor.address,
  ])
  assert.equal(await balance(vault, depositor.address), 0n)
  const expected = 1_000 * 1.06 ** (30 / 365)
  assert.ok(Math.abs(Number(await balance(usdc, depositor.address)) / 1e6 - expected) < 0.01)
  const { count, effects } = await ok('GET', `/effects?contract=vault&owner=${depositor.address}`)
  assert.equal(count, 3)
  assert.deepEqual(
    effects.map((each: { event: string }) => each.event),
    ['Deposit', 'Withdraw', 'Withdraw'],
  )
})

test('the vault obeys its settings: no growth, a donation, no liquidity', async () => {
  const depositor = funded(2)
  const total = () => reader().readContract({ address: vault, abi: erc4626Abi, functionName: 'totalAssets' })
  await ok('POST', '/vault', { drip_bps_per_year: 0 })
  const still = await total()
  await ok('POST', '/time', { advance_seconds: 86_400 })
  assert.equal(await total(), still)
  await ok('POST', '/vault', { donate_usdc: '10.5' })
  assert.equal(await total(), still + 10_500_000n)
  await ok('POST', '/faucet/fund', {
    chain_id: '8453',
    address: depositor.address,
    token: usdc,
    amount: '10',
  })
  await send(depositor, usdc, erc20Abi, 'approve', [vault, 10n * dollar])
  await send(depositor, vault, erc4626Abi, 'deposit', [10n * dollar, depositor.address])
  await ok('POST', '/vault', { illiquid: true })
  const withdraw = () =>
    send(depositor, vault, erc4626Abi, 'withdraw', [dollar, depositor.address, depositor.address])
  await assert.rejects(withdraw(), /reverted/)
  assert.equal(
    (await ok('POST', '/vault', { illiquid: false, drip_bps_per_year: 600 })).drip_bps_per_year,
    600,
  )
  await withdraw()
})

test('an attacker who inflates an empty vault loses the money and gains none', async () => {
  const [attacker, victim] = [funded(3), funded(4)]
  const artifact = JSON.parse(
    readFileSync(new URL('../evm/artifacts/Vault.json', import.meta.url), 'utf8'),
  ) as { abi: Abi; bytecode: Hex }
  const hash = await wallet(attacker).deployContract({ ...artifact, args: [usdc, attacker.address] })
  const fresh = (await waitForReceipt(hash)).contractAddress as Address
  for (const { address } of [attacker, victim]) {
    await ok('POST', '/faucet/fund', { chain_id: '8453', address, token: 'USDC', amount: '20000' })
  }
  const [attackerHad, victimHad] = [
    await balance(usdc, attacker.address),
    await balance(usdc, victim.address),
  ]
  await send(attacker, usdc, erc20Abi, 'approve', [fresh, 1n])
  await send(attacker, fresh, erc4626Abi, 'deposit', [1n, attacker.address])
  await send(attacker, usdc, erc20Abi, 'transfer', [fresh, 10_000n * dollar])
  await send(victim, usdc, erc20Abi, 'approve', [fresh, 5_000n * dollar])
  await send(victim, fresh, erc4626Abi, 'deposit', [5_000n * dollar, victim.address])
  for (const account of [victim, attacker]) {
    const shares = await balance(fresh, account.address)
    assert.ok(shares > 0n)
    await send(account, fresh, erc4626Abi, 'redeem', [shares, account.address, account.address])
  }
  assert.ok(victimHad - (await balance(usdc, victim.address)) <= dollar / 100n)
  assert.ok(attackerHad - (await balance(usdc, attacker.address)) >= 4_000n * dollar)
})

test('Multicall3 reads several values in one call', async () => {
  const owner = newcomer().address
  await ok('POST', '/faucet/fund', { chain_id: '8453', address: owner })
  const contracts = [usdc, dai].map(
    (address) => ({ address, abi: erc20Abi, functionName: 'balanceOf', args: [owner] }) as const,
  )
  const found = await reader().multicall({ contracts, allowFailure: false })
  assert.deepEqual(found, [10_000n * dollar, parseEther('100')])
  assert.equal(await reader().getBalance({ address: owner }), 0n, 'the default grant has no native coin')
})

test('a transaction has at most 2^24 gas and enough to begin, and one that is refused uses no nonce', async () => {
  const account = funded(8)
  const send = async (gas: bigint, id: ChainKey) => {
    const chain = chains[id]
    const client = createWalletClient({ account, chain, transport: http(urls.evm[id], { retryCount: 0 }) })
    const { address: to } = account
    const nonce = await reader(id).getTransactionCount({ address: to })
    const request = await client.prepareTransactionRequest({ to, value: 1n, gas, nonce } as never)
    return client.sendRawTransaction({
      serializedTransaction: await client.signTransaction(request as never),
    })
  }
  for (const id of Object.keys(chains) as unknown as ChainKey[]) {
    const before = await reader(id).getTransactionCount({ address: account.address })
    for (const gas of [2n ** 24n + 1n, 20_000n]) await assert.rejects(send(gas, id), /intrinsic gas too/)
    assert.equal(await reader(id).getTransactionCount({ address: account.address }), before)
    const hash = await send(2n ** 24n, id)
    assert.equal((await reader(id).waitForTransactionReceipt({ hash })).status, 'success')
  }
  const unlocked = funded(0).address
  const request = { method: 'eth_sendTransaction', params: [{ from: unlocked, to: unlocked }] }
  await waitForReceipt((await reader().request(request as never)) as Hex)
})

test('the router swaps at about the market price, for tokens and for ether', async () => {
  const trader = funded(5)
  await ok('POST', '/faucet/fund', {
    chain_id: '8453',
    address: trader.address,
    token: 'USDC',
    amount: '3500',
  })
  await send(trader, usdc, erc20Abi, 'approve', [router, 3_500n * dollar])
  const swap = [3_500n * dollar, 0n, [usdc, weth], trader.address, 2n ** 60n]
  await send(trader, router, routerAbi, 'swapExactTokensForTokens', swap)
  const got = await balance(weth, trader.address)
  assert.ok(got > parseEther('0.99') && got < parseEther('1'), `got ${got}`)
  const value = parseEther('0.1')
  const args = [0n, [weth, usdc], trader.address, 2n ** 60n] as const
  await waitForReceipt(
    await wallet(trader).writeContract({
      address: router,
      abi: routerAbi,
      functionName: 'swapExactETHForTokens',
      args,
      value,
      // The pair writes one slot more in a later second than in that of the estimate.
      gas: 300_000n,
    }),
  )
  assert.ok((await balance(usdc, trader.address)) > 345n * dollar)
})

type Batch = { nonce?: bigint; deadline?: bigint; executor?: Address; signer?: PrivateKeyAccount }
const signBatch = async (
  user: PrivateKeyAccount,
  calls: { to: Address; data: Hex }[],
  options: Batch = {},
) => {
  const { nonce = 0n, deadline = 0n, executor: only = pad('0x0', { size: 20 }), signer = user } = options
  const batchedCall = { calls: calls.map((call) => ({ ...call, value: 0n })), revertOnFailure: true }
  const message = { batchedCall, nonce, keyHash: pad('0x0'), executor: only, deadline }
  const domain = {
    name: 'Calibur',
    version: '1.0.0',
    chainId: 8453,
    verifyingContract: user.address,
    salt: pad(executor),
  }
  const signature = await signer.signTypedData({
    domain,
    types: batchTypes,
    primaryType: 'SignedBatchedCall',
    message,
  })
  const wrapped = encodeAbiParameters([{ type: 'bytes' }, { type: 'bytes' }], [signature, '0x'])
  return encodeFunctionData({ abi: executorAbi, functionName: 'execute', args: [message, wrapped] })
}
const refusedBy = (name: string) => async (attempt: Promise<unknown>) =>
  assert.rejects(attempt, (error: Error) => {
    const selector = keccak256(new TextEncoder().encode(`${name}()`)).slice(0, 10)
    return (
      JSON.stringify(error, (_key, value) => (typeof value === 'bigint' ? String(value) : value)).includes(
        selector,
      ) || error.message.includes(name)
    )
  })

test('a user without ether approves and deposits in one sponsored batch, once', async () => {
  const [user, sponsor] = [newcomer(), funded(6)]
  await ok('POST', '/faucet/fund', { chain_id: '8453', address: user.address, token: 'USDC', amount: '100' })
  const calls = [
    {
      to: usdc,
      data: encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [vault, 100n * dollar] }),
    },
    {
      to: vault,
      data: encodeFunctionData({
        abi: erc4626Abi,
        functionName: 'deposit',
        args: [100n * dollar, user.address],
      }),
    },
  ]
  const key = 77n << 64n
  const data = await signBatch(user, calls, { nonce: key })
  const authorization = await user.signAuthorization({ contractAddress: executor, chainId: 8453, nonce: 0 })
  const hash = await wallet(sponsor).sendTransaction({
    to: user.address,
    data,
    authorizationList: [authorization],
    // The vault writes its yield in a later second, but not in that of the estimate.
    gas: 600_000n,
  })
  assert.equal((await waitForReceipt(hash)).type, 'eip7702')
  assert.equal(await balance(usdc, user.address), 0n)
  assert.ok((await balance(vault, user.address)) > 0n)
  assert.equal(await reader().getBalance({ address: user.address }), 0n)
  const getSeq = { address: user.address, abi: executorAbi, functionName: 'getSeq' } as const
  assert.equal(await reader().readContract({ ...getSeq, args: [77n] }), 1n)
  assert.equal(await reader().readContract({ ...getSeq, args: [78n] }), 0n)

  const attempt = (again: Hex) => reader().call({ account: sponsor.address, to: user.address, data: again })
  const approve = calls.slice(0, 1)
  await refusedBy('InvalidNonce')(attempt(data))
  const past = (await headSeconds()) - 1n
  await refusedBy('SignatureExpired')(attempt(await signBatch(user, approve, { deadline: past })))
  await refusedBy('Unauthorized')(attempt(await signBatch(user, approve, { executor: dai })))
  await refusedBy('InvalidSignature')(attempt(await signBatch(user, approve, { signer: newcomer() })))
  await attempt(await signBatch(user, approve, { executor: sponsor.address, deadline: past + 600n }))

  const digest = keccak256('0x1234')
  const signature = await user.sign({ hash: digest })
  assert.equal(await reader().verifyHash({ address: user.address, hash: digest, signature }), true)
  const stranger = await newcomer().sign({ hash: digest })
  assert.equal(await reader().verifyHash({ address: user.address, hash: digest, signature: stranger }), false)
})

test('a batch whose last call fails moves nothing', async () => {
  const [user, sponsor] = [newcomer(), funded(6)]
  await ok('POST', '/faucet/fund', { chain_id: '8453', address: user.address, token: 'USDC', amount: '10' })
  const transfer = (units: bigint) => ({
    to: usdc,
    data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [dai, units] }),
  })
  const data = await signBatch(user, [transfer(dollar), transfer(10n * dollar)])
  const authorization = await user.signAuthorization({ contractAddress: executor, chainId: 8453, nonce: 0 })
  const request = { to: user.address, data, authorizationList: [authorization], gas: 500_000n }
  const hash = await wallet(sponsor).sendTransaction(request)
  assert.equal((await reader().waitForTransactionReceipt({ hash })).status, 'reverted')
  assert.equal(await balance(usdc, user.address), 10n * dollar)
})

test('the faucet grants once per id, and states the error of a bad request', async () => {
  const { address } = newcomer()
  const grantRequest = { chain_id: '137', address, id: `gift-${address}`, token: 'WPOL', amount: '3.5' }
  const answers = await Promise.all([1, 2, 3, 4].map(() => ok('POST', '/faucet/fund', grantRequest)))
  for (const answer of answers) assert.deepEqual(answer, answers[0])
  assert.equal(
    await balance('0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270', address, '137'),
    parseUnits('3.5', 18),
  )
  assert.equal((await callControl('POST', '/faucet/fund', { ...grantRequest, amount: '4' })).status, 409)
  await ok('POST', '/faucet/fund', { chain_id: '1', address, token: 'native', amount: '0.25' })
  assert.equal(await reader('1').getBalance({ address }), parseEther('0.25'))
  const bad = { chain_id: '5', address: '0x12', amount: '-1', token: 'NOPE' }
  for (const [field, value] of Object.entries(bad)) {
    const { status, body } = await callControl('POST', '/faucet/fund', {
      ...grantRequest,
      id: undefined,
      [field]: value,
    })
    assert.equal(status, 400)
    assert.match(body.detail, new RegExp(field))
  }
  for (const amount of ['0', '1000001', '1.0000000000000000001', 'ten']) {
    assert.equal(
      (await callControl('POST', '/faucet/fund', { ...grantRequest, id: undefined, amount })).status,
      400,
      amount,
    )
  }
})

test('the faucet, the clock and the injected failures apply to Solana too', async () => {
  const address = '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin'
  const solana = async (method: string, params: unknown[]) => {
    const answer = await fetch(urls.solana, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const { result } = (await answer.json()) as { result: { value: unknown } }
    return result.value
  }
  const grantRequest = { chain_id: '7565164', address, id: 'one', token: 'native', amount: '1.5' }
  const grant = await ok('POST', '/faucet/fund', grantRequest)
  assert.deepEqual(await ok('POST', '/faucet/fund', grantRequest), grant)
  assert.equal(await solana('getBalance', [address, { commitment: 'confirmed' }]), 1_500_000_000)
  const defaultGrant = await ok('POST', '/faucet/fund', { chain_id: '7565164', address, id: 'two' })
  const symbols = defaultGrant.credited.map(({ symbol }: { symbol: string }) => symbol)
  assert.deepEqual(symbols, ['USDC', 'JUP', 'PYUSD'])
  await ok('PUT', '/faults', { target: 'solana', refuse: true, methods: ['getBalance'], count: 1 })
  await assert.rejects(solana('getBalance', [address]), /fetch failed/)
  await ok('DELETE', '/faults')
  await ok('POST', '/chains/7565164/stop')
  await assert.rejects(solana('getBalance', [address]))
  await ok('POST', '/chains/7565164/start')
  assert.equal(await solana('getBalance', [address, { commitment: 'confirmed' }]), 1_500_000_000)
})

test('a dropped reply leaves the transaction on the chain', async () => {
  const sender = funded(7)
  const to = newcomer().address
  const request = await wallet(sender).prepareTransactionRequest({ to, value: 5n } as const)
  const serializedTransaction = await sender.signTransaction(request as never)
  await ok('PUT', '/faults', {
    target: 'evm:8453',
    drop_reply: true,
    methods: ['eth_sendRawTransaction'],
    count: 1,
  })
  await assert.rejects(reader().sendRawTransaction({ serializedTransaction }))
  await until('the transfer', async () => (await reader().getBalance({ address: to })) === 5n)
  await assert.rejects(reader().sendRawTransaction({ serializedTransaction }), /nonce|known|imported/i)
  await ok('DELETE', '/faults')
})

test('a server can be busy, broken, silent, slow or unreachable, for one method or a share of the calls', async () => {
  const call = (method: string, timeoutMs = 5_000) =>
    fetch(urls.evm['1'], {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify([{ jsonrpc: '2.0', id: 1, method, params: [] }]),
      signal: AbortSignal.timeout(timeoutMs),
    })
  const fault = (setting: object) => ok('PUT', '/faults', { target: 'evm:1', ...setting })
  await fault({ status: 429, methods: ['eth_gasPrice'] })
  const busy = await call('eth_gasPrice')
  assert.deepEqual([busy.status, busy.headers.get('retry-after')], [429, '1'])
  assert.equal((await call('eth_chainId')).status, 200)
  await fault({ html: true, status: 502 })
  assert.match(await (await call('eth_chainId')).text(), /<html>/)
  await fault({ silent: true, count: 1 })
  await assert.rejects(call('eth_chainId', 150), /timeout/i)
  assert.equal((await call('eth_chainId')).status, 200)
  await fault({ refuse: true })
  await assert.rejects(call('eth_chainId'), /fetch failed/)
  await fault({ latency_ms: 120 })
  const startedMs = performance.now()
  await call('eth_chainId')
  assert.ok(performance.now() - startedMs >= 115)
  await fault({ status: 503, rate: 0.5, seed: 3 })
  const seen = await Promise.all(Array.from({ length: 40 }, () => call('eth_chainId')))
  const failed = seen.filter(({ status }) => status === 503).length
  assert.ok(failed > 8 && failed < 32, `${failed} of 40 failed`)
  assert.equal((await ok('DELETE', '/faults?target=evm:1')).faults.length, 0)
  assert.equal((await call('eth_chainId')).status, 200)
  for (const wrong of [
    { target: 'evm:5', refuse: true },
    { target: 'evm:1' },
    { target: 'evm:1', latency: 5 },
  ]) {
    assert.equal((await callControl('PUT', '/faults', wrong)).status, 400)
  }
})

test('time advances on every chain, and a read sees it without any transaction', async () => {
  const stamp = async (id: ChainKey) => (await reader(id).getBlock()).timestamp
  const ids = ['1', '8453', '42161', '137'] as const
  const earlier = await Promise.all(ids.map(stamp))
  await ok('POST', '/time', { advance_seconds: 3_600 })
  for (const [index, id] of ids.entries()) assert.ok((await stamp(id)) - (earlier[index] as bigint) >= 3_600n)
  const at = await stamp('42161')
  await until('an idle block', async () => (await stamp('42161')) > at)
  assert.equal((await callControl('POST', '/time', { advance_seconds: -5 })).status, 400)
})

test('prices have the shape of DefiLlama, and can be set, marked as uncertain and removed', async () => {
  const prices = async (...keys: string[]) => {
    const answer = await fetch(`${urls.prices}/prices/current/${keys.join(',')}`)
    return ((await answer.json()) as { coins: Record<string, Record<string, number | string>> }).coins
  }
  const zero = `base:${pad('0x0', { size: 20 })}`
  const key = `base:${usdc}`
  const coins = await prices(
    key,
    zero,
    'coingecko:ethereum',
    'base:0x0000000000000000000000000000000000000bad',
  )
  assert.deepEqual(Object.keys(coins), [key, zero, 'coingecko:ethereum'])
  assert.deepEqual([coins[key]?.price, coins[key]?.symbol, coins[key]?.decimals], [1, 'USDC', 6])
  const { now_ms: nowMs } = await ok('GET', '/time')
  assert.ok(Math.abs(Number(coins[key]?.timestamp) - nowMs / 1000) < 5)
  await ok('POST', '/prices', { symbol: 'ETH', price_usd: '4000.5' })
  await ok('POST', '/prices', { symbol: 'AERO', confidence: 0.5, age_seconds: 900 })
  await ok('POST', '/prices', { symbol: 'DAI', listed: false })
  const aero = 'base:0x940181a94a35a4569e4529a3cdfb74e38fd98631'
  const changed = await prices(zero, aero, `base:${dai}`)
  assert.equal(changed[zero]?.price, 4000.5)
  assert.equal(changed[aero]?.confidence, 0.5)
  assert.equal(changed[`base:${dai}`], undefined)
  await ok('PUT', '/faults', { target: 'prices', status: 429, count: 1 })
  assert.equal((await fetch(`${urls.prices}/prices/current/${key}`)).status, 429)
  assert.equal((await callControl('POST', '/prices', { symbol: 'ETH', price_usd: 'much' })).status, 400)
})

test('a chain can be stopped, started, killed and reorganised, and restarts after a crash', async () => {
  const someone = newcomer().address
  const { block_number: _, ...given } = await ok('POST', '/faucet/fund', {
    chain_id: '42161',
    address: someone,
    id: `s-${someone}`,
  })
  const arb: Address = '0xaf88d065e77c8cC2239327C5EDb3A432268e5831'
  assert.equal((await ok('POST', '/chains/42161/stop')).running, false)
  await assert.rejects(reader('42161').getBlockNumber())
  assert.equal(
    (await callControl('POST', '/faucet/fund', { chain_id: '42161', address: someone })).status,
    503,
  )
  await ok('POST', '/chains/42161/start')
  assert.equal(await balance(arb, someone, '42161'), 10_000n * dollar)
  assert.deepEqual(
    await ok('POST', '/faucet/fund', { chain_id: '42161', address: someone, id: `s-${someone}` }),
    given,
  )

  process.kill(Number(await readFile(join(dataDir, '42161.pid'), 'utf8')), 'SIGTERM')
  await until('a restart', async () => (await balance(arb, someone, '42161')) === 10_000n * dollar)
  assert.equal((await ok('POST', '/chains/42161/kill')).running, false)
  await ok('POST', '/chains/42161/start')
  assert.equal(await balance(arb, someone, '42161'), 10_000n * dollar, 'saved state survives a kill')

  const other = newcomer().address
  await ok('POST', '/faucet/fund', { chain_id: '42161', address: other })
  await ok('POST', '/chains/42161/reorg', { depth: 1 })
  assert.equal(await balance(arb, other, '42161'), 0n)
  assert.equal((await callControl('POST', '/chains/99/stop')).status, 400)
})

test('the world restarts after a killed parent, a killed supervisor and a stop', async () => {
  const { address } = newcomer()
  const grantRequest = { chain_id: '8453', address, id: `keep-${address}` }
  const grant = await ok('POST', '/faucet/fund', grantRequest)
  const { offset_seconds: offset } = await ok('GET', '/time')
  const nonceOf = (index: number) => reader().getTransactionCount({ address: funded(index).address })
  const nonce = await nonceOf(2)
  const checks = async () => {
    assert.equal(world?.worldId, worldId)
    assert.equal(await balance(usdc, getAddress(address)), 10_000n * dollar)
    assert.deepEqual(await ok('POST', '/faucet/fund', grantRequest), grant)
    assert.equal(await nonceOf(2), nonce)
    assert.ok(Math.abs(Number(await headSeconds()) - Date.now() / 1000 - offset) < 15)
    assert.equal((await ok('GET', '/prices')).prices.ETH, '4000.5')
  }
  const restart = async () => {
    world = await startWorld({ dataDir, port: 0 })
    urls = world.urls
  }
  parent.kill('SIGKILL')
  await restart()
  await checks()
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    process.kill(Number(await readFile(join(dataDir, 'world.lock'), 'utf8')), signal)
    await restart()
    await checks()
  }
})
