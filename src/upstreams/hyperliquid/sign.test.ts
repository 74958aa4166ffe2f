import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createL1ActionHash } from '@nktkas/hyperliquid/signing'
import { privateKeyToAddress } from 'viem/accounts'
import { recoverTypedDataAddress } from 'viem/utils'
import type { VenueOrder } from '#kernel/money/venue-actions.ts'
import type { VenueIntent } from '#kernel/task/signer.ts'
import { signIntent, type VenueNetwork, wireAction } from './sign.ts'

const key = `0x${'0123456789'.repeat(7).slice(0, 64)}` as const
const secret = Buffer.from(key.slice(2), 'hex')
const own = privateKeyToAddress(key)

const order: VenueOrder = {
  asset: 4,
  isBuy: true,
  price: '1670.1',
  size: '0.0147',
  reduceOnly: false,
  when: { tif: 'ioc' },
  cloid: '0x00000000000000000000000000000001',
}
const intent = (action: VenueIntent['action'], change: Partial<VenueIntent> = {}): VenueIntent => ({
  type: 'venue_action',
  venue: 'hyperliquid',
  account: own,
  signer: own,
  action,
  userId: 'u',
  taskId: 't',
  operation: 'perp_open',
  chainId: '999',
  tokens: [],
  recipients: [],
  usdMicros: 0n,
  exit: false,
  nonce: 1_677_777_606_040n,
  expiresAtMs: 1_677_777_666_040,
  ...change,
})
const signatureOf = ({ r, s, v }: { r: string; s: string; v: number }) =>
  `0x${r.slice(2)}${s.slice(2)}${v.toString(16)}` as const

describe('signing for the venue', () => {
  test('an action hashes as the venue publishes it', () => {
    const wire = wireAction({ type: 'order', orders: [order], grouping: 'none' }, 0, 'mainnet')
    const [known] = wire.orders as Record<string, unknown>[]
    const { c: _cloid, ...bare } = known!
    assert.equal(
      createL1ActionHash({ action: { ...wire, orders: [bare] }, nonce: 1_677_777_606_040 }),
      '0x0fcbeda5ae3c4950a548021552a4fea2226858c4453571bf3f24ba017eac2908',
    )
  })

  test('keys are in the order of the schema, in any order of the intent', () => {
    const { cloid, when, reduceOnly, size, price, isBuy, asset } = order
    const shuffled = { cloid, when, reduceOnly, size, price, isBuy, asset }
    const text = (orders: VenueOrder[]) =>
      JSON.stringify(wireAction({ grouping: 'bracket', orders, type: 'order' }, 1, 'mainnet'))
    assert.equal(text([shuffled]), text([order]))
    assert.deepEqual(Object.keys(JSON.parse(text([order])).orders[0]), ['a', 'b', 'p', 's', 'r', 't', 'c'])
  })

  test('the signature of an order covers its bytes, its nonce and its expiry', async () => {
    const signed = intent({ type: 'order', orders: [order], grouping: 'none' })
    const body = JSON.parse(await signIntent(secret, signed, 'mainnet'))
    assert.deepEqual([body.nonce, body.expiresAfter], [1_677_777_606_040, 1_677_777_666_040])
    const signerOf = (connectionId: `0x${string}`) =>
      recoverTypedDataAddress({
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
        message: { source: 'a', connectionId },
        signature: signatureOf(body.signature),
      })
    const { action, nonce, expiresAfter } = body
    assert.equal(await signerOf(createL1ActionHash({ action, nonce, expiresAfter })), own)
    assert.notEqual(await signerOf(createL1ActionHash({ action, nonce })), own)
    assert.notEqual(await signerOf(createL1ActionHash({ action, nonce: nonce + 1, expiresAfter })), own)
  })

  test('cash moves to the requested side', () => {
    for (const to of ['perp', 'spot'] as const) {
      const { type, amount, toPerp } = wireAction({ type: 'move_cash', amount: '12.5', to }, 1, 'mainnet')
      assert.deepEqual([type, amount, toPerp], ['usdClassTransfer', '12.5', to === 'perp'])
    }
  })

  test('a withdrawal is signed over destination, amount and time', async () => {
    const signed = intent({ type: 'withdraw', destination: own, amount: '12.5' }, { expiresAtMs: null })
    const { action, nonce, signature, expiresAfter } = JSON.parse(await signIntent(secret, signed, 'mainnet'))
    assert.equal(expiresAfter, undefined)
    assert.equal(action.time, nonce)
    const recovered = await recoverTypedDataAddress({
      domain: {
        name: 'HyperliquidSignTransaction',
        version: '1',
        chainId: Number(action.signatureChainId),
        verifyingContract: '0x0000000000000000000000000000000000000000',
      },
      types: {
        'HyperliquidTransaction:Withdraw': [
          { name: 'hyperliquidChain', type: 'string' },
          { name: 'destination', type: 'string' },
          { name: 'amount', type: 'string' },
          { name: 'time', type: 'uint64' },
        ],
      },
      primaryType: 'HyperliquidTransaction:Withdraw',
      message: {
        hyperliquidChain: 'Mainnet',
        destination: own.toLowerCase(),
        amount: '12.5',
        time: 1_677_777_606_040n,
      },
      signature: signatureOf(signature),
    })
    assert.equal(recovered, own)
  })

  const signedFor = async (network: VenueNetwork, action: VenueIntent['action']) =>
    JSON.parse(await signIntent(secret, intent(action, { expiresAtMs: null }), network))
  /** The signer that the main network would recover from the body. */
  const mainnetSignerOf = async (body: {
    action: Record<string, unknown>
    nonce: number
    signature: never
  }) =>
    recoverTypedDataAddress({
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
      message: {
        source: 'a',
        connectionId: createL1ActionHash({ action: body.action, nonce: body.nonce }),
      },
      signature: signatureOf(body.signature),
    })

  test('a signature for the test network or the local world is not valid on the main network', async () => {
    const place: VenueIntent['action'] = { type: 'order', orders: [order], grouping: 'none' }
    assert.equal(await mainnetSignerOf(await signedFor('mainnet', place)), own)
    for (const network of ['testnet', 'local'] as const) {
      assert.notEqual(await mainnetSignerOf(await signedFor(network, place)), own)
      const { action } = await signedFor(network, { type: 'withdraw', destination: own, amount: '12.5' })
      assert.deepEqual([action.hyperliquidChain, action.signatureChainId], ['Testnet', '0x66eee'])
    }
    const { action } = await signedFor('mainnet', { type: 'withdraw', destination: own, amount: '12.5' })
    assert.deepEqual([action.hyperliquidChain, action.signatureChainId], ['Mainnet', '0xa4b1'])
  })
})
