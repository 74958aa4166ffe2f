import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import * as relayer from '@polymarket/bindings/relayer'
import { createSecureClient, relayerApiKey } from '@polymarket/client'
import { builderApiKey } from '@polymarket/client/node'
import { Chain, ClobClient, Side, SignatureTypeV2 } from '@polymarket/clob-client-v2'
import { encodeFunctionData, erc20Abi, type Hex } from 'viem'
import { base, polygon } from 'viem/chains'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import { approveAllCall, approveCall, wrapCall } from '#world/polymarket/chain/calls.ts'
import type { Address, Call } from '#world/polymarket/chain/chain-terms.ts'
import { walletOf as depositWalletOf, safeOf } from '#world/polymarket/chain/ids.ts'
import * as keySets from './prediction/key-sets.ts'
import { depositClient, environmentOf, signerAt } from './prediction/official-client.ts'
import { assertKeys, marketBySlug, readJson, walletOf } from './prediction/prediction.ts'
import { type PredictionWorld, startPredictionWorld } from './prediction/prediction-world.ts'
import { relayed, relayerOwner, transferCall } from './prediction/relayer-requests.ts'
import { assertWhole } from './prediction/schema-keys.ts'
import { accountOf, eventually } from './venue/venue.ts'

/** Wallets without gas: what the relayer does for whom, what it refuses, and how money moves in and out. */

let market: PredictionWorld
let url: string

before(async () => {
  market = await startPredictionWorld(undefined, ['8453'])
  url = market.world.urls.polymarket.relayer
})
beforeEach(() => market.control('POST', '/realism', { preset: 'quiet', seed: 5 }))
after(() => market?.stop())

const ownerAt = (number: number) => relayerOwner(market, number)

const dollar = 1_000_000n
const other = accountOf(799).address

test('a key of the relayer acts for its own account alone, a key of a builder for every one', async () => {
  const [first, second] = [await ownerAt(711), await ownerAt(712)]
  const pay = [transferCall(contracts.pusd, other, dollar)]
  const foreign = await first.submit(await first.sign(pay), second.headers)
  assert.deepEqual([foreign.status, foreign.body.error], [401, 'invalid authorization'])
  assert.equal((await first.submit(await first.sign(pay), {})).status, 401)
  const sent = await first.send(pay)
  assert.deepEqual(sent.body.state, 'STATE_NEW')
  assert.deepEqual(Object.keys(sent.body).sort(), ['state', 'transactionID'], 'no hash is known yet')
  assert.equal((await relayed(url, sent.body.transactionID)).state, 'STATE_CONFIRMED')
  const { address } = accountOf(712)
  const { key = '' } = await market.control<{ key: string }>('POST', '/relayer-key', { address })
  const client = await createSecureClient({
    environment: environmentOf(market.world),
    signer: signerAt(market.world, 712),
    apiKey: relayerApiKey({ key, address }),
  })
  const pusd = contracts.pusd
  const moved = await client.transferErc20({ tokenAddress: pusd, amount: dollar, recipientAddress: other })
  await moved.wait()
  assert.equal((await market.balances(other)).pusd, '2')
})

test('an order of a deposit wallet that is not deployed is refused as one of another account', async () => {
  const owner = accountOf(720).address
  const { clob: host } = market.world.urls.polymarket
  const common = { host, chain: Chain.POLYGON, signer: walletOf(720) }
  const creds = await new ClobClient(common).createOrDeriveApiKey()
  const client = new ClobClient({
    ...common,
    creds,
    throwOnError: true,
    signatureType: SignatureTypeV2.POLY_1271,
    funderAddress: depositWalletOf(owner),
  })
  const { yes } = await marketBySlug(market.world.urls.polymarket, 'bitcoin-reaches-250k-this-year')
  const bid = () => client.createAndPostOrder({ tokenID: yes, price: 0.01, size: 10, side: Side.BUY })
  await assert.rejects(bid(), /the order signer address has to be the address of the API KEY/)
  await depositClient(market, 720, '100')
  assert.equal((await bid()).status, 'live')
  await client.cancelAll()
})

test('both forms of the paths return the same of a transaction, with every key', async () => {
  const owner = await ownerAt(713)
  const { address } = accountOf(713)
  const { body } = await owner.send([transferCall(contracts.pusd, other, dollar)])
  const id = body.transactionID ?? ''
  const done = await relayed(url, id)
  assertWhole(relayer.GaslessTransactionSchema, done, 'transaction')
  assertKeys(done, keySets.relayedTransaction, 'transaction')
  const [older] = await readJson<Record<string, string>[]>(`${url}/transaction?id=${id}`)
  assertKeys(older ?? {}, keySets.olderRelayedTransaction, 'transaction of the older form')
  assert.deepEqual([older?.state, older?.transactionHash], ['STATE_CONFIRMED', done.transaction_hash])
  const list = await readJson<{ transactionID: string; from: string }[]>(`${url}/transactions`, owner)
  assert.ok(list.some(({ transactionID }) => transactionID === id))
  assert.ok(
    list.every(({ from }) => from === address),
    'a key of the relayer sees its own',
  )
  assert.deepEqual(await readJson(`${url}/transaction?id=none`), [])
  const query = `address=${address}&type=WALLET`
  const parameters = await readJson<{ nonce: string }>(`${url}/v1/account/transactions/params?${query}`)
  assertWhole(relayer.RelayerExecuteParamsSchema, parameters, 'parameters')
  assert.deepEqual(await readJson(`${url}/relay-payload?${query}`), parameters)
  assert.deepEqual(await readJson(`${url}/nonce?${query}`), { nonce: parameters.nonce })
  assert.deepEqual(await readJson(`${url}/deployed?address=${owner.wallet}`), { deployed: true })
  assert.deepEqual(await readJson(`${url}/deployed?address=${other}&type=WALLET`), { deployed: false })
})

test('targets and spenders that are not on the list are refused, as is what the owner did not sign', async () => {
  const owner = await ownerAt(714)
  const pay = transferCall(contracts.pusd, other, dollar)
  const refusals: [Call[], RegExp][] = [
    [[{ to: other, data: '0x' }], /^call blocked: call\[0\] blocked: calls to 0x\w{40} are not permitted$/],
    [[pay, approveCall(contracts.pusd, other, dollar)], /call\[1\] blocked: approvals to 0x/],
    [[approveAllCall(contracts.conditionalTokens, other)], /call\[0\] blocked: approvals to 0x/],
  ]
  for (const [calls, text] of refusals) {
    const { status, body } = await owner.send(calls)
    assert.equal(status, 400)
    assert.match(String(body.error), text)
  }
  const refusedTargets = [contracts.collateralAdapter]
  await market.control('POST', '/realism', { relayer: { refusedTargets } })
  const adapted: Call = { to: contracts.collateralAdapter, data: '0x' }
  assert.match(String((await owner.send([adapted])).body.error), /calls to 0xAdA100Db/)
  await market.control('POST', '/realism', { preset: 'quiet' })
  const signed = await owner.sign([pay])
  const forged = { ...signed, nonce: String(BigInt(signed.nonce) + 1n) }
  assert.equal((await owner.submit(forged)).body.error, 'invalid signature')
  assert.equal((await owner.send([pay], { deadline: 1n })).body.error, 'deadline expired')
  const nonce = await owner.nonce()
  assert.equal(
    (await owner.send([pay], { nonce: nonce - 1n })).body.error,
    `batch nonce ${nonce - 1n} does not match on-chain nonce ${nonce}`,
  )
  const tooMuch = await owner.send([transferCall(contracts.pusd, other, 10n ** 12n)])
  const failed = await relayed(url, tooMuch.body.transactionID)
  assert.equal(failed.state, 'STATE_FAILED')
  assert.match(failed.error_msg, /execution reverted: /)
  assert.equal((await market.balances(owner.wallet)).pusd, '1000')
})

test('a busy wallet, a stale nonce and a skipped redeem have the words of upstream', async () => {
  const owner = await ownerAt(715)
  const pay = [transferCall(contracts.pusd, other, dollar)]
  const preset = (name: string) => market.control('POST', '/realism', { preset: name })
  await preset('busyRelayer')
  assert.match(String((await owner.send(pay)).body.error), /wallet busy: active action/)
  await preset('staleNonces')
  assert.match(
    String((await owner.send(pay)).body.error),
    /batch nonce \d+ does not match on-chain nonce \d+/,
  )
  await preset('skippedRedeems')
  const { conditionId } = await marketBySlug(market.world.urls.polymarket, 'fed-cuts-rates-in-december')
  const client = await depositClient(market, 715, '0')
  await (await client.splitPosition({ conditionId, amount: 5n * dollar })).wait()
  await market.control('POST', '/resolve', { market: conditionId, outcome: 'yes' })
  const redeem = () => client.redeemPositions({ conditionId })
  await assert.rejects((await redeem()).wait(), /PRECHECK_SKIPPED: redeem skipped: zero position balance/)
  // Each transaction starts late: two of one wallet at once are not possible.
  await market.control('POST', '/realism', { preset: 'quiet', relayerLag: 1_500 })
  const first = await owner.send(pay)
  assert.equal((await owner.send(pay)).body.error, 'wallet has in-flight action')
  assert.equal((await relayed(url, first.body.transactionID)).state, 'STATE_CONFIRMED')
})

test('an older Safe moves its dollars and shares to the deposit wallet, signed by its owner', async () => {
  const { control, world } = market
  const { wallet } = (await depositClient(market, 716, '0')).account
  const owner = accountOf(716).address
  const { safe } = await control<{ safe: string }>('POST', '/safe', { owner })
  assert.equal(safe, safeOf(owner))
  await control('POST', '/credit', { wallet: safe, amount: '50' })
  await control('POST', '/credit', { wallet: safe, amount: '7', token: 'usdce' })
  const client = await createSecureClient({
    environment: environmentOf(world),
    signer: signerAt(world, 716),
    wallet: safe,
    apiKey: builderApiKey(await control('POST', '/builder-key', {})),
  })
  // Many approvals in one transaction: MultiSend, by delegation.
  await client.setupTradingApprovals()
  const { conditionId, yes, no } = await marketBySlug(
    world.urls.polymarket,
    'ada-winter-wins-the-mayoral-race',
  )
  await (await client.splitPosition({ conditionId, amount: 20n * dollar })).wait()
  const move = async (tokenAddress: string, amount: bigint) =>
    (await client.transferErc20({ tokenAddress, amount, recipientAddress: wallet })).wait()
  await move(contracts.pusd, 30n * dollar)
  await move(contracts.usdce, 7n * dollar)
  const held = await market.balances(wallet)
  assert.deepEqual([held.pusd, held.usdce], ['30', '7'])
  assert.deepEqual(await market.balances(safe, [yes, no]), {
    pusd: '0',
    usdc: '0',
    usdce: '0',
    shares: { [yes]: '20', [no]: '20' },
  })
  await (await client.mergePositions({ conditionId, amount: 20n * dollar })).wait()
  await move(contracts.pusd, 20n * dollar)
  assert.equal((await market.balances(wallet)).pusd, '50')
  const deposit = await ownerAt(716)
  const wrap = await deposit.send([
    approveCall(contracts.usdce, contracts.onramp, 7n * dollar),
    wrapCall(contracts.usdce, deposit.wallet, 7n * dollar),
  ])
  assert.equal((await relayed(url, wrap.body.transactionID)).state, 'STATE_CONFIRMED')
  assert.equal((await market.balances(wallet)).pusd, '1057')
})

test('a batch of many bytes is mined or refused, and holds nothing back', async () => {
  const owner = await ownerAt(721)
  const pay = transferCall(contracts.pusd, other, dollar)
  const padded = (bytes: number): Call[] => [{ ...pay, data: `${pay.data}${'11'.repeat(bytes)}` as Hex }]
  const large = await owner.send(padded(50_000))
  assert.equal((await relayed(url, large.body.transactionID)).state, 'STATE_CONFIRMED')
  assert.deepEqual(await owner.send(padded(100_000)), {
    status: 400,
    body: { error: 'invalid request body' },
  })
  const { body } = await owner.send([pay])
  assert.equal((await relayed(url, body.transactionID)).state, 'STATE_CONFIRMED')
})

type Carried = { status: string; txHash?: string; fromAmountBaseUnit: string }

const bridge = <T>(path: string, body?: unknown) =>
  readJson<T>(
    `${market.world.urls.polymarket.bridge}/${path}`,
    body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) },
  )

const arrival = (address: string, count = 1) =>
  eventually('the arrival', async () => {
    const { transactions } = await bridge<{ transactions: Carried[] }>(`status/${address}`)
    const isDone = transactions.length === count && transactions.every(({ status }) => status === 'COMPLETED')
    return isDone ? transactions : undefined
  })

const baseUsdc: Address = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'

test('what is sent to an address of the bridge arrives as pUSD, once, and leaves to another chain', async () => {
  const { world } = market
  const { address } = accountOf(717)
  const fund = (chainId: string, token: string, amount: string) =>
    readJson(`${world.urls.control}/faucet/fund`, {
      method: 'POST',
      body: JSON.stringify({ chain_id: chainId, address, token, amount }),
    })
  const client = await depositClient(market, 717, '0')
  const { wallet } = client.account
  const { address: target } = await bridge<{ address: { evm: Address } }>('deposit', { address: wallet })
  const pay = async (chain: typeof base | typeof polygon, token: Address, amount: bigint) => {
    const id = String(chain.id) as '137' | '8453'
    await fund(id, 'native', '10')
    const sender = walletOf(717, world.urls.evm[id])
    const { to, data } = transferCall(token, target.evm, amount)
    return sender.sendTransaction({ account: accountOf(717), chain, to, data })
  }
  await fund('8453', 'USDC', '100')
  await fund('137', 'USDC', '100')
  const hash = await pay(base, baseUsdc, 40n * dollar)
  const [carried] = await arrival(target.evm)
  assertKeys(carried ?? {}, keySets.bridgeTransaction, 'carried')
  assert.deepEqual([carried?.fromAmountBaseUnit, carried?.txHash], ['40000000', hash])
  assert.equal((await market.balances(wallet)).pusd, '40')
  await pay(polygon, contracts.usdc, 10n * dollar)
  // Less than the minimum stays where it is.
  await pay(polygon, contracts.usdc, dollar)
  await arrival(target.evm, 2)
  assert.equal((await market.balances(wallet)).pusd, '50')
  await eventually('the deposits in the data', async () => {
    const at = `${world.urls.polymarket.data}/activity?user=${wallet}&excludeDepositsWithdrawals=false`
    const rows = await readJson<{ type: string; usdcSize: number }[]>(at)
    return rows.filter(({ type }) => type === 'DEPOSIT').length === 2 ? rows : undefined
  })
  const away = await bridge<{ address: { evm: Address } }>('withdraw', {
    address: wallet,
    toChainId: '8453',
    toTokenAddress: baseUsdc,
    recipientAddr: other,
  })
  const out = { tokenAddress: contracts.pusd, amount: 25n * dollar, recipientAddress: away.address.evm }
  await (await client.transferErc20(out)).wait()
  await arrival(away.address.evm)
  const balance = await readJson<{ result: string }>(world.urls.evm['8453'], {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'eth_call',
      params: [
        {
          to: baseUsdc,
          data: encodeFunctionData({ abi: erc20Abi, functionName: 'balanceOf', args: [other] }),
        },
        'latest',
      ],
    }),
  })
  assert.equal(BigInt(balance.result), 25n * dollar)
  assert.equal((await market.balances(wallet)).pusd, '25')
  assert.equal((await market.control<{ isWhole: boolean }>('GET', '/backing')).isWhole, true)
})

test('a kill of the market while money is under way neither loses nor repeats it', async () => {
  const { world, control } = market
  const { wallet } = (await depositClient(market, 718, '0')).account
  const { address: target } = await bridge<{ address: { evm: Address } }>('deposit', { address: wallet })
  await control('POST', '/ramp', { ramp: 'onramp', asset: 'usdce', state: 'paused' })
  for (let i = 0; i < 3; i += 1)
    await control('POST', '/credit', { wallet: target.evm, amount: '5', token: 'usdce' })
  await eventually('the deposits', async () => {
    const { transactions } = await bridge<{ transactions: Carried[] }>(`status/${target.evm}`)
    return transactions.length === 3 ? true : undefined
  })
  assert.equal((await market.balances(wallet)).pusd, '0')
  await control('POST', '/ramp', { ramp: 'onramp', asset: 'usdce', state: 'open' })
  for (const act of ['kill', 'start'])
    await readJson(`${world.urls.control}/chains/polymarket/${act}`, { method: 'POST', body: '{}' })
  await arrival(target.evm, 3)
  assert.equal((await market.balances(wallet)).pusd, '15')
})

test('a spent quota ends with the day', async () => {
  const owner = await ownerAt(719)
  const pay = [transferCall(contracts.pusd, other, dollar)]
  await market.control('POST', '/realism', { preset: 'relayerQuota' })
  const { status, body } = await owner.send(pay)
  assert.equal(status, 429)
  const seconds = Number(
    /^quota exceeded: 0 units remaining, resets in (\d+) seconds$/.exec(String(body.error))?.[1],
  )
  assert.ok(seconds > 0 && seconds <= 86_400, String(body.error))
  await market.control('POST', '/advance', { ms: seconds * 1_000 })
  const deadline = BigInt(Math.floor(Date.now() / 1_000) + 200_000)
  assert.equal((await owner.send(pay, { deadline })).status, 200)
  await market.control('POST', '/relayer-quota', { resetsInMs: 60_000 })
  const again = await owner.send(pay, { deadline })
  assert.deepEqual([again.status, /resets in (?:60|59) seconds$/.test(String(again.body.error))], [429, true])
  await market.control('POST', '/advance', { ms: 60_000 })
  await eventually('the relayer has a new quota', async () =>
    (await owner.send(pay, { deadline })).status === 200 ? true : undefined,
  )
})
