import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashMessage, hashTypedData } from 'viem/utils'
import type { OutcomeOrderAction, WalletKind } from '#kernel/money/prediction-actions.ts'
import { chainId, exchanges, type Hex } from './contracts.ts'
import {
  digestOf,
  orderIdOf,
  orderIdsAt,
  orderSigner,
  safeTransactionHash,
  signatureTypes,
  venueSignature,
} from './digests.ts'
import { safeTransactionOf } from './multi-send.ts'

/** Each digest equals the one that a general implementation of EIP-712 computes from the structures. */

const owner = '0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1'
const wallet = '0x651FdBAb146239a0F3E94b919C5Abd7B9d6F5309'
const word = (digit: string) => `0x${digit.repeat(64)}` as const
const signature = `0x${'11'.repeat(64)}1b` as const

const fields = (list: string) =>
  list.split(',').map((field) => {
    const [type = '', name = ''] = field.split(' ')
    return { type, name }
  })
const Order = fields(
  'uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder',
)

const orderOf = (exchange: string, walletKind: WalletKind): OutcomeOrderAction => ({
  type: 'order',
  exchange,
  salt: 9_007_199_254_740_991n,
  walletKind,
  wallet: walletKind === 'eoa' ? owner : wallet,
  owner,
  outcomeId: String(2n ** 256n - 3n),
  side: walletKind === 'safe' ? 'sell' : 'buy',
  makerUnits: 6_200_000n,
  takerUnits: 10_000_000n,
  timestampMs: 1_796_031_914_072,
  metadata: word('7'),
  builder: word('a'),
})

for (const [name, { address, domainVersion }] of Object.entries(exchanges))
  for (const walletKind of ['eoa', 'safe', 'deposit_wallet'] as const)
    test(`orders of ${walletKind} for ${name} have their EIP-712 digest`, () => {
      const order = orderOf(name, walletKind)
      const domain = {
        name: 'Polymarket CTF Exchange',
        version: domainVersion,
        chainId,
        verifyingContract: address,
      }
      const contents = {
        salt: order.salt,
        maker: order.wallet as Hex,
        signer: orderSigner(order) as Hex,
        tokenId: BigInt(order.outcomeId),
        makerAmount: order.makerUnits,
        takerAmount: order.takerUnits,
        side: order.side === 'buy' ? 0 : 1,
        signatureType: signatureTypes[walletKind],
        timestamp: BigInt(order.timestampMs),
        metadata: order.metadata as Hex,
        builder: order.builder as Hex,
      }
      const plain = hashTypedData({ domain, types: { Order }, primaryType: 'Order', message: contents })
      assert.equal(orderIdOf(order), plain)
      if (walletKind !== 'deposit_wallet') {
        assert.equal(digestOf(order), plain)
        assert.equal(venueSignature(order, signature), signature)
        return
      }
      const TypedDataSign = fields(
        'Order contents,string name,string version,uint256 chainId,address verifyingContract,bytes32 salt',
      )
      const nested = hashTypedData({
        domain,
        types: { Order, TypedDataSign },
        primaryType: 'TypedDataSign',
        message: {
          contents,
          name: 'DepositWallet',
          version: '1',
          chainId: BigInt(chainId),
          verifyingContract: wallet,
          salt: word('0'),
        },
      })
      assert.equal(digestOf(order), nested)
      // 65 bytes of the owner, two words, the type of an order of 186 bytes, and its length.
      assert.equal(venueSignature(order, signature).length, 2 + 2 * (65 + 32 + 32 + 186 + 2))
    })

test('an order for an exchange that nobody knows is not hashed', () => {
  assert.throws(() => digestOf(orderOf('v4', 'eoa')), /unknown exchange/)
})

const call = { to: owner, value: 0n, data: '0x095ea7b3' }
const other = { to: wallet, value: 5n, data: '0x' }

test('batches of a deposit wallet have their EIP-712 digest', () => {
  const Call = fields('address target,uint256 value,bytes data')
  const Batch = fields('address wallet,uint256 nonce,uint256 deadline,Call[] calls')
  const calls = [call, other]
  const action = {
    type: 'wallet_batch',
    owner,
    wallet,
    nonce: 7n,
    deadlineSeconds: 1_796_032_512,
    calls,
  } as const
  const expected = hashTypedData({
    domain: { name: 'DepositWallet', version: '1', chainId, verifyingContract: wallet },
    types: { Call, Batch },
    primaryType: 'Batch',
    message: {
      wallet,
      nonce: 7n,
      deadline: 1_796_032_512n,
      calls: calls.map(({ to, value, data }) => ({ target: to as Hex, value, data: data as Hex })),
    },
  })
  assert.equal(digestOf({ ...action, calls }), expected)
})

test('transactions of a Safe are signed as a message, which their signature says', () => {
  const SafeTx = fields(
    'address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce',
  )
  const nobody = `0x${'0'.repeat(40)}` as const
  for (const calls of [[call], [call, other]]) {
    const action = { type: 'safe_batch' as const, owner, safe: wallet, nonce: 3n, calls }
    const { to, value, data, operation } = safeTransactionOf(calls)
    assert.equal(operation, calls.length - 1)
    const hash = hashTypedData({
      domain: { chainId, verifyingContract: wallet },
      types: { SafeTx },
      primaryType: 'SafeTx',
      message: {
        to: to as Hex,
        value,
        data,
        operation,
        safeTxGas: 0n,
        baseGas: 0n,
        gasPrice: 0n,
        gasToken: nobody,
        refundReceiver: nobody,
        nonce: 3n,
      },
    })
    assert.equal(safeTransactionHash(action), hash)
    assert.equal(digestOf(action), hashMessage({ raw: hash }))
    assert.equal(venueSignature(action, signature).slice(-2), '1f')
  }
  assert.throws(() => safeTransactionOf([]), /at least one call/)
})

test('only a signature of 65 bytes becomes one of the venue', () => {
  const action = { type: 'sign_in', owner, timestampSeconds: 1, nonce: 0n } as const
  assert.throws(() => venueSignature(action, '0x1234'), /65 bytes/)
})

test('the hash of an order at another time is that of the order with this time', () => {
  for (const exchange of ['standard', 'neg_risk', 'v3'] as const) {
    const order = orderOf(exchange, 'deposit_wallet')
    const idAt = orderIdsAt(order)
    for (const timestampMs of [0, 1, 1_795_823_993_654, Number.MAX_SAFE_INTEGER])
      assert.equal(idAt(timestampMs), orderIdOf({ ...order, timestampMs }))
  }
})
