import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { builderApiKey } from '@polymarket/client/node'
import { Chain, ClobClient, createL1Headers, createL2Headers, Side } from '@polymarket/clob-client-v2'
import ccxt from 'ccxt'
import fc from 'fast-check'
import { createWalletClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { polygon } from 'viem/chains'
import type {
  OutcomeOrderAction,
  PredictionAction,
  RelayedAction,
  WalletKind,
} from '#kernel/money/prediction-actions.ts'
import type { VenueCredentials } from '#kernel/money/prediction-venue.ts'
import { keyHeaders, relayerHeaders } from '#upstreams/polymarket/auth-headers.ts'
import { type ExchangeName, exchanges } from '#upstreams/polymarket/contracts.ts'
import { orderIdOf, orderSigner, signatureTypes } from '#upstreams/polymarket/digests.ts'
import { orderAmounts } from '#upstreams/polymarket/order-amounts.ts'
import { polymarketCrypto } from '#upstreams/polymarket/sign.ts'
import { walletsOf } from '#upstreams/polymarket/wallet-addresses.ts'

/** Signatures, authorization and amounts equal those of three clients that nobody here wrote. */

const key = `0x${'01'.repeat(32)}` as const
const secret = () => Buffer.from(key.slice(2), 'hex')
const account = privateKeyToAccount(key)
const owner = account.address
const signer = createWalletClient({ account, chain: polygon, transport: http('http://127.0.0.1:1') })
const wallets = walletsOf(owner)
const walletOf = (kind: WalletKind) => wallets.find((wallet) => wallet.kind === kind)!.wallet
const kinds: WalletKind[] = ['eoa', 'safe', 'deposit_wallet']
const names = Object.keys(exchanges) as ExchangeName[]
const sign = (action: PredictionAction) => polymarketCrypto.sign(secret(), action)
const zero32 = `0x${'0'.repeat(64)}`
const yesOfV1 = '45601394554497090173642354630373884477724604907691447337031201817815960365378'

type Wire = Record<string, string | number> & { signature: string }
const sideOf = (side: string | number) => (side === 0 || side === 'BUY' ? 'buy' : 'sell')
const kindOf = (type: number) => kinds.find((kind) => signatureTypes[kind] === type)!
/** The action whose fields are those of a foreign client's order. */
const actionOf = (order: Wire, exchange: ExchangeName, of = owner as string): OutcomeOrderAction => ({
  type: 'order',
  exchange,
  salt: BigInt(order.salt!),
  walletKind: kindOf(Number(order.signatureType)),
  wallet: String(order.maker),
  owner: of,
  outcomeId: String(order.tokenId),
  side: sideOf(order.side!),
  makerUnits: BigInt(order.makerAmount!),
  takerUnits: BigInt(order.takerAmount!),
  timestampMs: Number(order.timestamp),
  metadata: String(order.metadata),
  builder: String(order.builder),
})

const versionOf = (exchange: ExchangeName) => (exchange === 'v3' ? 3 : 2)
const clientOf = (kind: WalletKind) =>
  new ClobClient({
    host: 'http://127.0.0.1:1',
    chain: Chain.POLYGON,
    signer,
    signatureType: signatureTypes[kind],
    funderAddress: walletOf(kind),
  })

test('orders of every exchange and wallet are signed as by clob-client-v2', async () => {
  for (const exchange of names)
    for (const kind of kinds)
      for (const side of [Side.BUY, Side.SELL]) {
        const terms = { tokenID: yesOfV1, price: 0.62, size: 10, side, builderCode: `0x${'ab'.repeat(32)}` }
        const options = { tickSize: '0.01', negRisk: exchange === 'neg_risk' } as const
        const order = await clientOf(kind).orderBuilder.buildOrder(terms, options, versionOf(exchange))
        const foreign = order as unknown as Wire
        const action = actionOf(foreign, exchange)
        assert.equal(orderSigner(action), foreign.signer, `${exchange} ${kind}`)
        assert.equal(await sign(action), foreign.signature, `${exchange} ${kind} ${side}`)
      }
})

test('orders of every exchange and wallet are signed as by ccxt', async () => {
  const client = new ccxt.prediction.polymarket({ privateKey: key, walletAddress: owner })
  const random = fc.sample(
    fc.record({
      salt: fc.bigInt({ min: 1n, max: 2n ** 53n - 1n }),
      outcomeId: fc.bigInt({ min: 1n, max: 2n ** 256n - 1n }),
      makerUnits: fc.bigInt({ min: 1n, max: 10n ** 12n }),
      takerUnits: fc.bigInt({ min: 1n, max: 10n ** 12n }),
      isBuy: fc.boolean(),
      timestampMs: fc.integer({ min: 1, max: 2_000_000_000_000 }),
    }),
    { numRuns: 8, seed: 34 },
  )
  for (const exchange of names)
    for (const kind of kinds)
      for (const { salt, outcomeId, makerUnits, takerUnits, isBuy, timestampMs } of random) {
        const action: OutcomeOrderAction = {
          type: 'order',
          exchange,
          salt,
          walletKind: kind,
          wallet: walletOf(kind),
          owner,
          outcomeId: String(outcomeId),
          side: isBuy ? 'buy' : 'sell',
          makerUnits,
          takerUnits,
          timestampMs,
          metadata: zero32,
          builder: zero32,
        }
        const message = {
          salt: String(salt),
          maker: action.wallet,
          signer: orderSigner(action),
          tokenId: action.outcomeId,
          makerAmount: String(makerUnits),
          takerAmount: String(takerUnits),
          side: isBuy ? 0 : 1,
          signatureType: signatureTypes[kind],
          timestamp: String(timestampMs),
          metadata: zero32,
          builder: zero32,
        }
        const { address, domainVersion } = exchanges[exchange]
        const foreign = client.signClobOrder(message, address, domainVersion, signatureTypes[kind])
        assert.equal((await sign(action)).toLowerCase(), foreign, `${exchange} ${kind}`)
      }
})

type Known = {
  owner: string
  wallets: { deposit: string; legacy: string; safe: string }
  orders: (Wire & { from: string; exchange: string })[]
  batches: {
    depositWalletParams: {
      calls: { data: string; target: string; value: string }[]
      deadline: string
      depositWallet: string
    }
    nonce: string
    signature: string
  }[]
  safeTransactions: { nonce: string; proxyWallet: string; signature: string; data: string; to: string }[]
}
/** What the official clients signed with this key; the file belongs to the local world, which checks it by itself. */
const known = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../world/polymarket/chain/known-signatures.json'), 'utf8'),
) as Known
const exchangeNames: Record<string, ExchangeName> = {
  standardExchange: 'standard',
  negRiskExchange: 'neg_risk',
  exchangeV3: 'v3',
}

test('orders that the official clients signed have the same signatures', async () => {
  assert.equal(known.owner, owner)
  const clients = new Set<string>()
  for (const order of known.orders) {
    clients.add(order.from)
    assert.equal(await sign(actionOf(order, exchangeNames[order.exchange]!)), order.signature, order.from)
  }
  assert.deepEqual([...clients].sort(), ['@polymarket/client 0.2.0', '@polymarket/clob-client-v2 1.1.0'])
  assert.equal(known.orders.length, 15)
})

test('wallets have the addresses that the official client derives', () => {
  const { deposit, legacy, safe } = known.wallets
  assert.deepEqual(
    wallets.map(({ kind, wallet }) => [kind, wallet]),
    [
      ['deposit_wallet', deposit],
      ['deposit_wallet', legacy],
      ['safe', safe],
      ['eoa', owner],
    ],
  )
})

test('batches of deposit wallets and Safes are signed as by the official client', async () => {
  const batches = known.batches.map(({ depositWalletParams, nonce, signature }) => {
    const { calls, deadline, depositWallet } = depositWalletParams
    const action: RelayedAction = {
      type: 'wallet_batch',
      owner,
      wallet: depositWallet,
      nonce: BigInt(nonce),
      deadlineSeconds: Number(deadline),
      calls: calls.map(({ target, value, data }) => ({ to: target, value: BigInt(value), data })),
    }
    return { action, signature, calls: action.calls }
  })
  assert.equal(batches.length, 2)
  for (const { action, signature } of batches) assert.equal(await sign(action), signature)
  // The same calls, one and two of them, were also signed for a Safe.
  for (const [index, { nonce, proxyWallet, signature }] of known.safeTransactions.entries()) {
    const { calls } = batches[index]!
    const action: RelayedAction = {
      type: 'safe_batch',
      owner,
      safe: proxyWallet,
      nonce: BigInt(nonce),
      calls,
    }
    assert.equal(await sign(action), signature)
  }
})

test('nothing is signed by a key that is not the owner’s', async () => {
  const other = Buffer.from('02'.repeat(32), 'hex')
  const action: PredictionAction = { type: 'sign_in', owner, timestampSeconds: 1, nonce: 0n }
  await assert.rejects(polymarketCrypto.sign(other, action), /not that of the owner/)
})

test('both kinds of authorization equal those of the official clients', async () => {
  const timestampSeconds = 1_796_031_914
  const signature = await sign({ type: 'sign_in', owner, timestampSeconds, nonce: 3n })
  const l1 = await createL1Headers(signer, Chain.POLYGON, 3, timestampSeconds)
  assert.equal(signature, l1.POLY_SIGNATURE)

  // A secret whose bytes need the characters in which the two alphabets differ.
  const urlSecret = Buffer.from('fbff'.repeat(16), 'hex')
    .toString('base64')
    .replaceAll('+', '-')
    .replaceAll('/', '_')
  const credentials: VenueCredentials = { owner, key: 'k', secret: urlSecret, passphrase: 'p' }
  for (const body of ['', JSON.stringify({ orderID: '0x12', text: 'ü "€"' })]) {
    const args = { method: 'DELETE', requestPath: '/order', ...(body && { body }) }
    const creds = { key: 'k', secret: urlSecret, passphrase: 'p' }
    const l2 = await createL2Headers(signer, creds, args, timestampSeconds)
    const own = keyHeaders(credentials, { method: 'DELETE', path: '/order', body, timestampSeconds })
    assert.deepEqual(own, { ...l2 })
    assert.match(own.POLY_SIGNATURE!, /^[A-Za-z0-9_-]+=$/)
  }
})

test('the operator’s authorization at the relayer equals that of the official client', async () => {
  const creds = { key: 'b', secret: Buffer.alloc(32, 255).toString('base64'), passphrase: 'q' }
  const body = JSON.stringify({ type: 'WALLET-CREATE' })
  const request = { method: 'POST' as const, path: '/submit', body }
  // The method is public in the client's code, and missing in its types.
  const operator = builderApiKey(creds) as {
    authorize?(given: typeof request): Promise<Record<string, string>>
  }
  const foreign = new Headers(await operator.authorize!(request))
  const timestampSeconds = Number(foreign.get('POLY_BUILDER_TIMESTAMP'))
  const own = relayerHeaders({ type: 'builder', ...creds }, { ...request, timestampSeconds })
  for (const [name, value] of Object.entries(own)) assert.equal(value, foreign.get(name), name)
  assert.equal(Object.keys(own).length, 4)
})

const ticks = ['0.1', '0.01', '0.005', '0.0025', '0.001', '0.0001'] as const
const dollar = 1_000_000

test('amounts of limits and market orders equal those of the official client at every tick', async () => {
  const client = clientOf('eoa')
  const samples = fc.sample(
    fc.record({ step: fc.nat(), cents: fc.integer({ min: 500, max: 10_000_000 }), isBuy: fc.boolean() }),
    { numRuns: 12, seed: 7 },
  )
  for (const tick of ticks)
    for (const { step, cents, isBuy } of samples) {
      const tickMicros = BigInt(Math.round(Number(tick) * dollar))
      const steps = Math.round(1 / Number(tick)) - 1
      const priceMicros = tickMicros * BigInt(1 + (step % steps))
      const price = Number(priceMicros) / dollar
      const units = BigInt(cents) * 10_000n
      const grid = { tickMicros, minSizeUnits: 5_000_000n }
      const options = { tickSize: tick, negRisk: false }
      const side = isBuy ? Side.BUY : Side.SELL
      const label = `${tick} ${price} ${cents} ${side}`
      const limit = await client.orderBuilder.buildOrder(
        { tokenID: yesOfV1, price, size: cents / 100, side },
        options,
        2,
      )
      const own = orderAmounts(
        { type: 'limit', side: isBuy ? 'buy' : 'sell', priceMicros, sizeUnits: units },
        grid,
      )
      assert.deepEqual(
        [String(own.makerUnits), String(own.takerUnits)],
        [limit.makerAmount, limit.takerAmount],
        label,
      )
      const market = await client.orderBuilder.buildMarketOrder(
        { tokenID: yesOfV1, price, amount: cents / 100, side },
        options,
        2,
      )
      const taken = orderAmounts(
        isBuy
          ? { type: 'market', side: 'buy', cashUnits: units, worstPriceMicros: priceMicros }
          : { type: 'market', side: 'sell', sizeUnits: units, worstPriceMicros: priceMicros },
        grid,
      )
      assert.deepEqual(
        [String(taken.makerUnits), String(taken.takerUnits)],
        [market.makerAmount, market.takerAmount],
        `market ${label}`,
      )
    }
})

test('the id of an order is its hash, whatever the wallet', () => {
  const [first] = known.orders
  const action = actionOf(first!, exchangeNames[first!.exchange]!)
  const ids = [action, { ...action, salt: action.salt + 1n }, { ...action, exchange: 'v3' }].map(orderIdOf)
  assert.equal(new Set(ids).size, 3)
  for (const id of ids) assert.match(id, /^0x[0-9a-f]{64}$/)
})
