import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { keccak256 as reference } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { keccak256 } from '#world/venue-core/keccak.ts'
import { toHex } from '#world/venue-core/signature.ts'
import { type Action, canonicalAction } from './actions.ts'
import { msgpack } from './msgpack.ts'
import { connectionId, l1Digest, recoverAddress, userDigest } from './recover.ts'
import { MalformedError } from './schema.ts'

const wallet = privateKeyToAccount('0x0123456789012345678901234567890123456789012345678901234567890123')

const split = (hex: string) => ({
  r: hex.slice(0, 66),
  s: `0x${hex.slice(66, 130)}`,
  v: Number.parseInt(hex.slice(130), 16),
})

const order = {
  type: 'order',
  orders: [{ a: 4, b: true, p: '1670.1', s: '0.0147', r: false, t: { limit: { tif: 'Ioc' } } }],
  grouping: 'na',
}

test('the action hash equals the published one', () => {
  const hash = connectionId({ action: canonicalAction(order), nonce: 1_677_777_606_040 })
  assert.equal(toHex(hash), '0fcbeda5ae3c4950a548021552a4fea2226858c4453571bf3f24ba017eac2908')
})

test('keys in any order and trailing zeros hash as the canonical action', () => {
  const shuffled = {
    grouping: 'na',
    extra: 'is dropped',
    orders: [{ t: { limit: { tif: 'Ioc' } }, r: false, s: '00.014700', p: '1670.10', b: true, a: 4 }],
    type: 'order',
  }
  assert.deepEqual(canonicalAction(shuffled), order)
  assert.equal(JSON.stringify(canonicalAction(shuffled)), JSON.stringify(order))
})

test('vault and expiry each change the hash', () => {
  const action = canonicalAction(order)
  const vaultAddress = `0x${'17'.repeat(20)}`
  const hashes = [
    connectionId({ action, nonce: 1 }),
    connectionId({ action, nonce: 2 }),
    connectionId({ action, nonce: 1, vaultAddress }),
    connectionId({ action, nonce: 1, expiresAfter: 5 }),
    connectionId({ action, nonce: 1, vaultAddress, expiresAfter: 5 }),
  ].map(toHex)
  assert.equal(new Set(hashes).size, hashes.length)
})

test('the signer of an L1 action is recovered, also without leading zeros of r and s', async () => {
  let short = 0
  for (let nonce = 1; nonce <= 60; nonce += 1) {
    const signed = { action: canonicalAction(order), nonce }
    const hex = await wallet.signTypedData({
      domain: {
        name: 'Exchange',
        version: '1',
        chainId: 1337,
        verifyingContract: '0x0000000000000000000000000000000000000000',
      },
      types: {
        Agent: [
          { name: 'source', type: 'string' },
          { name: 'connectionId', type: 'bytes32' },
        ],
      },
      primaryType: 'Agent',
      message: { source: 'a', connectionId: `0x${toHex(connectionId(signed))}` },
    })
    const { r, s, v } = split(hex)
    const bare = (half: string) => `0x${half.slice(2).replace(/^0+/, '')}`
    if (bare(r).length < 66 || bare(s).length < 66) short += 1
    assert.equal(
      recoverAddress(l1Digest(signed), { r: bare(r), s: bare(s), v }),
      wallet.address.toLowerCase(),
    )
    assert.equal(recoverAddress(l1Digest(signed), { r, s, v: v - 27 }), wallet.address.toLowerCase())
  }
  assert.ok(short > 0, 'no half began with a zero; sign more')
})

test('an invalid signature recovers to an unknown address, and a malformed one is rejected', () => {
  const digest = l1Digest({ action: canonicalAction(order), nonce: 1 })
  const full = `0x${'f'.repeat(64)}`
  assert.equal(recoverAddress(digest, { r: full, s: full, v: 27 }), undefined)
  assert.equal(recoverAddress(digest, { r: '0x0', s: '0x0', v: 27 }), undefined)
  assert.throws(() => recoverAddress(digest, { r: '0xzz', s: '0x1', v: 27 }), MalformedError)
  assert.throws(() => recoverAddress(digest, { r: '0x1', s: '0x1', v: 29 }), MalformedError)
})

test('user-signed actions are bound to their chain id, and a missing agent name is the empty one', async () => {
  const action = {
    type: 'approveAgent',
    signatureChainId: '0x66eee',
    hyperliquidChain: 'Mainnet',
    agentAddress: `0x${'AB'.repeat(20)}`,
    nonce: 1_700_000_000_000,
  }
  const hex = await wallet.signTypedData({
    domain: {
      name: 'HyperliquidSignTransaction',
      version: '1',
      chainId: 421_614,
      verifyingContract: '0x0000000000000000000000000000000000000000',
    },
    types: {
      'HyperliquidTransaction:ApproveAgent': [
        { name: 'hyperliquidChain', type: 'string' },
        { name: 'agentAddress', type: 'address' },
        { name: 'agentName', type: 'string' },
        { name: 'nonce', type: 'uint64' },
      ],
    },
    primaryType: 'HyperliquidTransaction:ApproveAgent',
    message: {
      hyperliquidChain: 'Mainnet',
      agentAddress: `0x${'ab'.repeat(20)}`,
      agentName: '',
      nonce: BigInt(action.nonce),
    },
  })
  const signerOf = (given: unknown) => recoverAddress(userDigest(canonicalAction(given)), split(hex))
  assert.equal(signerOf(action), wallet.address.toLowerCase())
  assert.equal(signerOf({ ...action, agentName: '' }), wallet.address.toLowerCase())
  assert.notEqual(signerOf({ ...action, signatureChainId: '0xa4b1' }), wallet.address.toLowerCase())
  assert.notEqual(signerOf({ ...action, agentName: 'x' }), wallet.address.toLowerCase())
})

test('bodies that are no action are malformed', () => {
  const [first] = order.orders
  const bad: unknown[] = [
    null,
    [],
    {},
    { type: 'nothing' },
    { type: '__proto__' },
    { ...order, orders: 'none' },
    { ...order, grouping: 'everything' },
    { ...order, orders: [{ ...first, a: -1 }] },
    { ...order, orders: [{ ...first, a: '4' }] },
    { ...order, orders: [{ ...first, p: 1670.1 }] },
    { ...order, orders: [{ ...first, p: '1e3' }] },
    { ...order, orders: [{ ...first, s: '' }] },
    { ...order, orders: [{ ...first, b: 1 }] },
    { ...order, orders: [{ ...first, t: {} }] },
    { ...order, orders: [{ ...first, c: '0x12' }] },
    { type: 'updateLeverage', asset: 0, isCross: true, leverage: 1.5 },
  ]
  for (const body of bad) assert.throws(() => canonicalAction(body), MalformedError, JSON.stringify(body))
})

test('keccak equals the reference for every length', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (data) => {
      assert.equal(`0x${toHex(keccak256(data))}`, reference(data))
    }),
    { numRuns: 300 },
  )
  const empty = 'c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470'
  assert.equal(toHex(keccak256(new Uint8Array(0))), empty)
  assert.notEqual(empty, createHash('sha3-256').digest('hex'))
})

test('integers are packed unsigned and in the shortest form', () => {
  const packed = (value: unknown) => toHex(msgpack(value))
  assert.equal(packed(4_294_967_296), 'cf0000000100000000')
  assert.equal(
    packed(1_677_777_606_040),
    'cf00000186a3d0fd98'.replace('a3d0fd98', (1_677_777_606_040 % 2 ** 32).toString(16)),
  )
  assert.equal(packed(4_294_967_295), 'ceffffffff')
  assert.equal(packed(127), '7f')
  assert.equal(packed(128), 'cc80')
  assert.equal(packed(-1), 'ff')
  assert.equal(packed(-33), 'd0df')
  assert.equal(packed({ a: undefined, b: [true, null] }), '81a16292c3c0')
  assert.equal(packed('x'.repeat(40)).slice(0, 4), 'd928')
  assert.throws(() => packed(1.5))
  assert.throws(() => packed(1n as unknown as Action))
})
