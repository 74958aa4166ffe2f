import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { privateKeyToAddress, sign } from 'viem/accounts'
import {
  bytesToHex,
  concat,
  encodeAbiParameters,
  hexToBytes,
  keccak256,
  numberToHex,
  parseAbiParameters,
  recoverAddress,
  recoverAuthorizationAddress,
  stringToHex,
  toRlp,
} from 'viem/utils'
import type { EvmBatch } from '#kernel/task/signer.ts'
import { batchHash, executeData, executedBatchIn, executionOf, nonceKeyOf, nonceOf } from './batch.ts'
import { evmCrypto } from './custody-crypto.ts'
import { addressOfKey, signDigest } from './secp256k1.ts'
import { approveData, readCall, transferData } from './token-calls.ts'
import type { Hex } from './wire.ts'

const secret = hexToBytes('0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d')
const account = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const delegate = '0x000000009B1D0aF20D8C6d0A44e162d11F9b8f00'
const vault = '0xea12000000000000000000000000000000008453'
const executor = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'

const batch: EvmBatch = {
  chainId: '8453',
  account,
  delegate,
  executor,
  calls: [
    { to: vault, value: 0n, data: '0x1234' },
    { to: executor, value: 5n, data: '0x' },
  ],
  nonce: 7n << 64n,
  deadlineSeconds: 1_800_000_000,
}

const word = (types: string, values: unknown[]) =>
  keccak256(encodeAbiParameters(parseAbiParameters(types) as never, values as never))
const named = (text: string) => keccak256(stringToHex(text))

/** The digest computed step by step, as in the published contract. */
function digestByHand({ calls, nonce, deadlineSeconds, executor: sender }: EvmBatch): Hex {
  const callType = 'Call(address to,uint256 value,bytes data)'
  const batchType = `BatchedCall(Call[] calls,bool revertOnFailure)${callType}`
  const signedType = `SignedBatchedCall(BatchedCall batchedCall,uint256 nonce,bytes32 keyHash,address executor,uint256 deadline)${batchType}`
  const callHashes = calls.map(({ to, value, data }) =>
    word('bytes32, address, uint256, bytes32', [named(callType), to, value, keccak256(data as Hex)]),
  )
  const inner = word('bytes32, bytes32, bool', [named(batchType), keccak256(concat(callHashes)), true])
  const zero = numberToHex(0, { size: 32 })
  const struct = word('bytes32, bytes32, uint256, bytes32, address, uint256', [
    named(signedType),
    inner,
    nonce,
    zero,
    sender,
    BigInt(deadlineSeconds),
  ])
  const domain = word('bytes32, bytes32, bytes32, uint256, address, bytes32', [
    '0xd87cd6ef79d4e2b95e15ce8abf732db51ec771f1ca2edccf22a46c729ac56472',
    named('Calibur'),
    named('1.0.0'),
    8453n,
    account,
    numberToHex(BigInt(delegate), { size: 32 }),
  ])
  return keccak256(concat(['0x1901', domain, struct]))
}

test('a batch is hashed as in the published contract, salt and executor included', () => {
  assert.equal(batchHash(batch), digestByHand(batch))
  const { executor: _, ...open } = batch
  assert.equal(batchHash(open), digestByHand({ ...open, executor: `0x${'0'.repeat(40)}` }))
  assert.notEqual(batchHash(open), batchHash(batch))
})

test('the signature of a batch recovers to the account that owns the key', async () => {
  const signature = (await evmCrypto.signBatch(secret, batch)) as Hex
  assert.equal(signature.length, 132)
  assert.equal(await recoverAddress({ hash: digestByHand(batch), signature }), account)
  assert.equal(evmCrypto.addressOf(secret), account)
})

test('addresses and signatures are those of another implementation, bit by bit', async () => {
  const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 })
  await fc.assert(
    fc.asyncProperty(bytes, bytes, async (key, digest) => {
      fc.pre(key.some((byte) => byte !== 0) && key[0] !== 255)
      const privateKey = bytesToHex(key)
      assert.equal(addressOfKey(key), privateKeyToAddress(privateKey))
      const { r, s, yParity } = await sign({ hash: bytesToHex(digest), privateKey })
      assert.deepEqual(signDigest(key, bytesToHex(digest)), { r, s, yParity })
    }),
  )
})

test('a delegation is signed over magic, chain, delegate and nonce', async () => {
  const signed = await evmCrypto.signDelegation(secret, { chainId: '8453', delegate, nonce: 3 })
  const hash = keccak256(concat(['0x05', toRlp([numberToHex(8453), delegate, numberToHex(3)])]))
  const { r, s, yParity } = signed
  assert.equal(await recoverAddress({ hash, signature: { r: r as Hex, s: s as Hex, yParity } }), account)
  const authorization = {
    chainId: 8453,
    address: delegate,
    nonce: 3,
    r: r as Hex,
    s: s as Hex,
    yParity,
  } as const
  assert.equal(await recoverAuthorizationAddress({ authorization }), account)
  assert.deepEqual([signed.chainId, signed.address, signed.nonce], [8453, delegate, 3])
})

test('short parts of a signature keep their full width', async () => {
  await fc.assert(
    fc.asyncProperty(fc.bigInt({ min: 0n, max: 2n ** 64n }), async (key) => {
      const signature = await evmCrypto.signBatch(secret, { ...batch, nonce: key << 64n })
      assert.equal(signature.length, 132)
    }),
    { numRuns: 60 },
  )
})

test('an execution is read back from the nonce of its batch, and the batch from its transaction', () => {
  const executionId = '00b6f012-34ff-eabc-0def-0123456789ab'
  const nonce = nonceOf(executionId, 2)
  assert.deepEqual(executionOf(nonce), { executionId, sequence: 2 })
  // Of another delegate's making.
  assert.equal(executionOf(2n ** 250n), undefined)
  const signed = { ...batch, nonce, executor: account }
  const { calls, deadlineSeconds } = signed
  const read = executedBatchIn(executeData(signed, `0x${'11'.repeat(65)}`))
  assert.deepEqual(read && { ...read, executor: read.executor.toLowerCase() }, {
    calls,
    deadlineSeconds,
    nonce,
    executor: account.toLowerCase(),
  })
  assert.equal(executedBatchIn('0x'), undefined)
  assert.equal(executedBatchIn(`${executeData(signed, '0x').slice(0, 10)}00`), undefined)
})

test('each execution has its own nonce key, at sequence zero', () => {
  const id = '0191b6f0-1234-7abc-8def-0123456789ab'
  assert.equal(nonceOf(id) >> 64n, nonceKeyOf(id))
  assert.equal(nonceOf(id) & (2n ** 64n - 1n), 0n)
  assert.equal(nonceKeyOf(id), 0x0191b6f012347abc8def0123456789abn)
})

test('custody decodes known calls exactly', () => {
  const amount = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
  fc.assert(
    fc.property(amount, (amountUnits) => {
      const approve = { to: vault, value: 0n, data: approveData(executor, amountUnits) }
      assert.deepEqual(readCall(approve), { name: 'approve', token: vault, spender: executor, amountUnits })
      const transfer = { to: vault, value: 0n, data: transferData(executor, amountUnits) }
      assert.deepEqual(readCall(transfer), { name: 'transfer', token: vault, to: executor, amountUnits })
    }),
  )
})

test('trailing bytes, unclean padding and unknown selectors are not decoded', () => {
  const data = approveData(executor, 5n)
  const call = (bytes: string) => ({ to: vault, value: 0n, data: bytes })
  assert.ok(readCall(call(data)))
  assert.equal(readCall(call(`${data}00`)), undefined)
  assert.equal(readCall(call(`${data.slice(0, 10)}01${data.slice(12)}`)), undefined)
  assert.equal(readCall(call(data.slice(0, -2))), undefined)
  assert.equal(readCall(call('0xdeadbeef')), undefined)
  assert.equal(readCall(call('0x')), undefined)
})
