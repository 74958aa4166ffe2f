import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { hashTypedData, recoverAddress } from 'viem'
import { knownTokens } from '#world/conformance/prediction/known-tokens.ts'
import { accountOf, addressOf, signHash } from './accounts.ts'
import { accountAddresses, chainId, contracts, type Hex } from './addresses.ts'
import type { AccountName, ExchangeName, SignedOrder } from './chain-terms.ts'
import { checksummed } from './encoding.ts'
import {
  binaryMarketV2,
  collectionIdOf,
  earlierWalletOf,
  negRiskEventV2,
  positionIdOf,
  protocolOf,
  safeOf,
  walletOf,
} from './ids.ts'
import { orderHash, verifyOrder } from './orders.ts'
import { multiSendCalls, recoverBatch, recoverSafeTransaction } from './wallets.ts'

type Known = {
  owner: Hex
  wallets: { deposit: Hex; legacy: Hex; safe: Hex }
  orders: (Record<'from' | 'salt' | 'tokenId' | 'makerAmount' | 'takerAmount' | 'timestamp', string> &
    Omit<SignedOrder, 'salt' | 'tokenId' | 'makerAmount' | 'takerAmount' | 'timestamp'> & {
      exchange: ExchangeName
    })[]
  batches: {
    depositWalletParams: {
      calls: { data: Hex; target: Hex; value: string }[]
      deadline: string
      depositWallet: Hex
    }
    nonce: string
    signature: Hex
  }[]
  safeTransactions: {
    data: Hex
    nonce: string
    proxyWallet: Hex
    signature: Hex
    signatureParams: { operation: '0' | '1' }
    to: Hex
  }[]
}

const known = JSON.parse(readFileSync(join(import.meta.dirname, 'known-signatures.json'), 'utf8')) as Known

const ordersOf = (each: Known['orders'][number]): SignedOrder => ({
  ...each,
  salt: BigInt(each.salt),
  tokenId: BigInt(each.tokenId),
  makerAmount: BigInt(each.makerAmount),
  takerAmount: BigInt(each.takerAmount),
  timestamp: BigInt(each.timestamp),
})

test('tokens of real markets have their ids', () => {
  for (const { collateral, conditionId, indexSet, id } of knownTokens)
    assert.equal(positionIdOf(collateral, collectionIdOf(conditionId, indexSet)), id)
})

test('an id of protocol v2 has its parts in their places, and shows its protocol', () => {
  const { conditionId, outcomeIds } = binaryMarketV2('0x1234')
  assert.match(conditionId, /^0x01[0-9a-f]{32}0{28}$/)
  assert.deepEqual(outcomeIds, [BigInt(`${conditionId}00`), BigInt(`${conditionId}01`)])
  const { eventId, markets } = negRiskEventV2('0x1234', 3)
  assert.match(eventId, /^0x02[0-9a-f]{32}0003(00){8}0000$/)
  assert.deepEqual(
    markets.map((each) => each.conditionId),
    [0, 1, 2].map((index) => `${eventId}000${index}`),
  )
  assert.equal(protocolOf(outcomeIds[1]), 'v2')
  for (const { id } of knownTokens) assert.equal(protocolOf(id), 'v1')
})

test('wallets have the addresses that the clients derive', () => {
  const { deposit, legacy, safe } = known.wallets
  assert.deepEqual(
    [walletOf(known.owner), earlierWalletOf(known.owner), safeOf(known.owner)],
    [deposit, legacy, safe],
  )
})

test('every order that a published client signed is its owner’s, under its own exchange alone', () => {
  assert.equal(known.orders.length, 15)
  for (const each of known.orders) {
    const order = ordersOf(each)
    const verdict = verifyOrder(order, each.exchange)
    assert.deepEqual(
      verdict,
      { isValid: true, owner: known.owner, hash: orderHash(order, each.exchange) },
      `${each.from} ${each.exchange} ${each.signatureType}`,
    )
    for (const other of ['standardExchange', 'negRiskExchange', 'exchangeV3'] as const)
      if (other !== each.exchange) assert.equal(verifyOrder(order, other).isValid, false)
    const changes = [
      { price: 1n, takerAmount: order.takerAmount - 1n },
      { maker: contracts.pusd },
      { signatureType: 1 },
      { signature: order.signature.slice(0, -2) as Hex },
      { signature: `${order.signature}00` as Hex },
    ]
    for (const change of changes)
      assert.equal(
        verifyOrder({ ...order, ...change }, each.exchange).isValid,
        false,
        JSON.stringify(Object.keys(change)),
      )
  }
})

test('an order hash is that of viem', () => {
  const [first] = known.orders
  const { from: _from, exchange, signature: _signature, ...fields } = first!
  const types = {
    Order: [
      'salt uint256',
      'maker address',
      'signer address',
      'tokenId uint256',
      'makerAmount uint256',
      'takerAmount uint256',
      'side uint8',
      'signatureType uint8',
      'timestamp uint256',
      'metadata bytes32',
      'builder bytes32',
    ].map((field) => ({ name: field.split(' ')[0]!, type: field.split(' ')[1]! })),
  }
  const domain = {
    name: 'Polymarket CTF Exchange',
    version: '2',
    chainId,
    verifyingContract: contracts[exchange],
  }
  assert.equal(
    orderHash(ordersOf(first!), exchange),
    hashTypedData({ domain, types, primaryType: 'Order', message: fields }),
  )
})

test('batches and transactions of a Safe that the client signed are their owner’s', () => {
  for (const { depositWalletParams, nonce, signature } of known.batches) {
    const batch = {
      wallet: depositWalletParams.depositWallet,
      nonce: BigInt(nonce),
      deadline: BigInt(depositWalletParams.deadline),
      calls: depositWalletParams.calls.map((call) => ({ ...call, value: BigInt(call.value) })),
    }
    assert.equal(recoverBatch(batch, signature), known.owner)
    assert.notEqual(recoverBatch({ ...batch, nonce: batch.nonce + 1n }, signature), known.owner)
    assert.equal(recoverBatch(batch, '0x12'), undefined)
  }
  const seen = known.safeTransactions.map(({ data, nonce, proxyWallet, signature, signatureParams, to }) => {
    const operation = Number(signatureParams.operation) as 0 | 1
    const transaction = { safe: proxyWallet, to, value: 0n, data, operation, nonce: BigInt(nonce) }
    assert.equal(recoverSafeTransaction(transaction, signature), known.owner)
    return multiSendCalls(data)?.map(({ target, value }) => [target, value])
  })
  assert.deepEqual(seen, [
    undefined,
    [
      [contracts.pusd, 0n],
      [contracts.pusd, 0n],
    ],
  ])
})

test('the venue’s accounts are those that the contracts name, and sign as contracts read it', async () => {
  for (const name of Object.keys(accountAddresses) as AccountName[]) {
    assert.equal(accountOf(name).address, addressOf(name))
    assert.equal(checksummed(addressOf(name).toLowerCase()), addressOf(name))
  }
  const hash = orderHash(ordersOf(known.orders[0]!), 'exchangeV3')
  assert.equal(await recoverAddress({ hash, signature: signHash('maker', hash) }), addressOf('maker'))
})
