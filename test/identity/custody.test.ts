import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { recoverAddress } from 'viem/utils'
import type { SigningChain } from '#engines/custody/evm-rules.ts'
import { createEnvKek, createKeyEncryptionKeys } from '#engines/custody/key-encryption-keys.ts'
import { createCustodySigner } from '#engines/custody/signer.ts'
import { sealedWallet } from '#engines/custody/wallet-store.ts'
import { createReceipts } from '#features/policy/receipt.ts'
import { later } from '#kernel/clock.ts'
import { systemRandom } from '#kernel/id.ts'
import { type EvmIntent, intentHash, type PolicyReceipt } from '#kernel/task/signer.ts'
import { query } from '#store/query.ts'
import { batchHash } from '#upstreams/evm/batch.ts'
import { evmCrypto } from '#upstreams/evm/custody-crypto.ts'
import {
  createIdentityApp,
  delegate,
  faultOf,
  type IdentityApp,
  newKek,
  usdc,
  vault,
} from './identity-app.ts'
import {
  actionOf,
  approve,
  deposit,
  intentOf,
  newTask,
  redeem,
  reserve,
  stranger,
  transfer,
  units,
  withdraw,
} from './intents.ts'

let app: IdentityApp
const first = newKek('first')
before(async () => {
  app = await createIdentityApp({ keyEncryptionKeys: createKeyEncryptionKeys(first) })
})
after(() => app[Symbol.asyncDispose]())

type Part = Pick<IdentityApp, 'db' | 'keystore' | 'clock'>
const base: SigningChain = {
  chainId: '8453',
  delegate,
  contracts: [vault],
  maxUnits: { [usdc]: units * 2n },
}
const signerOf = (from: Part, isAuthentic: (receipt: PolicyReceipt) => boolean = app.policy.isAuthentic) =>
  createCustodySigner({
    assertFree: () => {},
    db: from.db,
    keystore: from.keystore,
    crypto: evmCrypto,
    chains: [base],
    clock: from.clock,
    isAuthentic,
  })

const newcomer = async () => {
  const { userId } = await app.auth.authenticate(`Bearer ${await app.token(await app.register())}`)
  const wallet = await sealedWallet(app.db, userId, 'evm')
  assert.ok(wallet)
  return { userId, own: wallet.address, wallet }
}
type User = Awaited<ReturnType<typeof newcomer>>

const allowed = async (user: User, change: (intent: EvmIntent) => EvmIntent = (each) => each) => {
  const action = await reserve(actionOf(app, user.userId), app)
  const intent = change(intentOf(app, action, user.own))
  return { intent, receipt: await app.transact((tx) => app.policy.policy.authorize(tx, intent)) }
}
const ruleOf = async (answer: Promise<unknown>) => {
  const { code, extras } = await faultOf(answer)
  assert.equal(code, 'policy_denied')
  return extras.rule
}

describe('signatures', () => {
  test('an intent that the policy allowed is signed with the key of the wallet', async () => {
    const user = await newcomer()
    const { intent, receipt } = await allowed(user)
    const { signature, delegation } = await signerOf(app).signBatch(intent, receipt)
    const signer = await recoverAddress({
      hash: batchHash(intent.batch),
      signature: signature as `0x${string}`,
    })
    assert.equal(signer, user.own)
    assert.deepEqual([delegation?.chainId, delegation?.address, delegation?.nonce], [8453, delegate, 0])
  })

  test('without its own receipt nothing is signed: not with an imitation, a copy, an old receipt or that of another intent', async () => {
    const user = await newcomer()
    const { intent, receipt } = await allowed(user)
    const twin = await allowed(user)
    const sign = (given: EvmIntent, by: PolicyReceipt) => ruleOf(signerOf(app).signBatch(given, by))
    assert.equal(await sign(intent, { ...receipt }), 'signer_receipt')
    assert.equal(await sign(intent, twin.receipt), 'signer_receipt_intent')
    assert.equal(await sign({ ...intent, usdMicros: 0n }, receipt), 'signer_receipt_intent')
    const changed = { ...intent, batch: { ...intent.batch, nonce: intent.batch.nonce + 1n } }
    assert.equal(await sign(changed, receipt), 'signer_receipt_intent')
    app.time.offsetMs += 61_000
    assert.equal(await sign(intent, receipt), 'signer_receipt_expired')
    app.time.offsetMs = 0
  })

  /** A compromised policy issues receipts for anything; custody still enforces its own rules. */
  const taken = createReceipts()
  const forged = (user: User, change: (intent: EvmIntent) => EvmIntent) => {
    const intent = change(intentOf(app, actionOf(app, user.userId), user.own))
    const { userId, taskId } = intent
    const expiresAt = later(app.clock.now(), 60_000)
    const receipt = taken.make({
      id: newTask(app),
      userId,
      taskId,
      intentHash: intentHash(intent),
      expiresAt,
    })
    return signerOf(app, taken.isAuthentic).signBatch(intent, receipt)
  }
  const calls = (made: (user: User) => EvmIntent['batch']['calls']) => (intent: EvmIntent, user: User) => ({
    ...intent,
    batch: { ...intent.batch, calls: made(user) },
  })
  const batch =
    (change: (batch: EvmIntent['batch']) => Partial<EvmIntent['batch']>) => (intent: EvmIntent) => ({
      ...intent,
      batch: { ...intent.batch, ...change(intent.batch) },
    })
  const spending = (amountUnits: bigint, spender: string, token = usdc) => [{ token, amountUnits, spender }]

  const refused: [string, string, (intent: EvmIntent, user: User) => EvmIntent][] = [
    [
      'another chain',
      'chain',
      (intent) => ({ ...intent, chainId: '1', batch: { ...intent.batch, chainId: '1' } }),
    ],
    ['different chains', 'chain', batch(() => ({ chainId: '42161' }))],
    ['another account', 'account', batch(() => ({ account: stranger }))],
    ['another delegate', 'delegate', batch(() => ({ delegate: stranger }))],
    [
      'a delegation to other code',
      'delegate',
      (intent) => ({ ...intent, delegation: { chainId: '8453', delegate: stranger, nonce: 0 } }),
    ],
    [
      'a delegation on another chain',
      'chain',
      (intent) => ({ ...intent, delegation: { chainId: '1', delegate, nonce: 0 } }),
    ],
    [
      'a delegation nonce below zero',
      'nonce',
      (intent) => ({ ...intent, delegation: { chainId: '8453', delegate, nonce: -1 } }),
    ],
    ['a batch nonce beyond 256 bits', 'nonce', batch(() => ({ nonce: 1n << 256n }))],
    [
      'a deadline in the past',
      'deadline',
      batch((each) => ({ deadlineSeconds: each.deadlineSeconds - 700 })),
    ],
    [
      'a deadline in two hours',
      'deadline',
      batch((each) => ({ deadlineSeconds: each.deadlineSeconds + 7200 })),
    ],
    ['no deadline', 'deadline', batch(() => ({ deadlineSeconds: Number.POSITIVE_INFINITY }))],
    ['no calls', 'calls', calls(() => [])],
    ['too many calls', 'calls', calls(() => Array(17).fill(approve()))],
    ['native value', 'value', calls(() => [{ ...approve(), value: 1n }])],
    ['an unknown selector', 'selector', calls(() => [{ to: usdc, value: 0n, data: '0xa22cb465' }])],
    ['bytes after the arguments', 'selector', calls(() => [{ ...approve(), data: `${approve().data}00` }])],
    ['an approval for another account', 'spender', calls(() => [approve(stranger)])],
    ['an approval that the intent does not list', 'approval', calls(() => [approve(vault, units + 1n)])],
    ['an approval of another token than listed', 'approval', calls(() => [approve(vault, units, stranger)])],
    [
      'a listed approval for an account that is not configured',
      'spender',
      (intent, user) => ({
        ...calls(() => [approve(stranger)])(intent, user),
        spends: spending(units, stranger),
      }),
    ],
    [
      'an unlimited approval, though listed',
      'cap',
      (intent, user) => ({
        ...calls(() => [approve(vault, 2n ** 256n - 1n)])(intent, user),
        spends: spending(2n ** 256n - 1n, vault),
      }),
    ],
    [
      'a listed approval of a token that must not leave',
      'token',
      (intent, user) => ({
        ...calls(() => [approve(vault, units, stranger)])(intent, user),
        spends: spending(units, vault, stranger),
      }),
    ],
    ['shares for another account', 'receiver', calls(() => [approve(), deposit(stranger)])],
    ['a deposit into another vault', 'deposit', calls(({ own }) => [deposit(own, units, stranger)])],
    ['a deposit above the spend', 'deposit', calls(({ own }) => [deposit(own, units + 1n)])],
    ['assets for another account', 'receiver', calls(({ own }) => [withdraw(stranger, own)])],
    ['shares of another account', 'owner', calls(({ own }) => [withdraw(own, stranger)])],
    ['redeemed assets for another account', 'receiver', calls(({ own }) => [redeem(stranger, own)])],
    ['a withdrawal from another vault', 'contract', calls(({ own }) => [withdraw(own, own, stranger)])],
    ['a transfer to an unlisted recipient', 'recipient', calls(() => [transfer(stranger)])],
    [
      'transfers that add up beyond the cap',
      'cap',
      calls(() => [transfer(vault), transfer(vault), transfer(vault, 1n)]),
    ],
  ]
  for (const [what, rule, change] of refused) {
    test(`custody denies ${what}, with any receipt`, async () => {
      const user = await newcomer()
      assert.equal(await ruleOf(forged(user, (intent) => change(intent, user))), `signer_${rule}`)
    })
  }

  test('withdrawals to the own account and transfers to a recipient of the intent are signed', async () => {
    const user = await newcomer()
    const both = calls(({ own }) => [withdraw(own, own), redeem(own, own), transfer(vault)])
    assert.match((await forged(user, (intent) => both(intent, user))).signature, /^0x[0-9a-f]{130}$/)
  })

  test('an intent of one user on the account of another is denied', async () => {
    const [user, victim] = await Promise.all([newcomer(), newcomer()])
    const onVictim = batch(() => ({ account: victim.own, calls: [approve(), deposit(victim.own)] }))
    assert.equal(await ruleOf(forged(user, onVictim)), 'signer_account')
  })

  test('an intent that is changed while the key is fetched is signed in its checked form', async () => {
    const user = await newcomer()
    const { intent, receipt } = await allowed(user)
    const hash = batchHash(intent.batch)
    const signing = signerOf(app).signBatch(intent, receipt)
    intent.batch.calls = [transfer(stranger)]
    const { signature } = await signing
    assert.equal(await recoverAddress({ hash, signature: signature as `0x${string}` }), user.own)
  })
})

describe('keys at rest', () => {
  const moved: string[] = []

  test("a sealed key that is moved to another user's row does not open", async () => {
    const [user, thief] = [await newcomer(), await newcomer()]
    const swap = `update wallet set ciphertext = $2, wrapped_dek = $3 where user_id = $1 and kind = 'evm'`
    moved.push(thief.wallet.id)
    await query(app.db, swap, [thief.userId, user.wallet.ciphertext, user.wallet.wrapped_dek])
    const { intent, receipt } = await allowed(thief)
    await assert.rejects(signerOf(app).signBatch(intent, receipt), /another key or for another row/)
  })

  test('a row whose address, kind or user was edited does not open', async () => {
    const { wallet } = await newcomer()
    for (const edit of [
      { address: stranger },
      { kind: 'svm' as const },
      { user_id: newTask(app) },
      { version: 2 },
    ])
      await assert.rejects(app.keystore.withKey({ ...wallet, ...edit }, async () => undefined))
    assert.equal(
      await app.keystore.withKey(wallet, async (secret) => evmCrypto.addressOf(secret)),
      wallet.address,
    )
  })

  test('the database and the code sign nothing without the key-encryption key', async () => {
    const user = await newcomer()
    const { intent, receipt } = await allowed(user)
    for (const guess of [
      newKek('first'),
      newKek('second'),
      createEnvKek('first', Buffer.alloc(32).toString('base64'), systemRandom),
    ]) {
      const thief = await app.instance({ keyEncryptionKeys: createKeyEncryptionKeys(guess) })
      await assert.rejects(signerOf(thief).signBatch(intent, receipt))
    }
  })

  test('a secret is wiped after its use', async () => {
    const { wallet } = await newcomer()
    let retained: Uint8Array | undefined
    await app.keystore.withKey(wallet, async (secret) => {
      retained = secret
      assert.notDeepEqual(Buffer.from(secret), Buffer.alloc(32))
    })
    assert.deepEqual(Buffer.from(retained as Uint8Array), Buffer.alloc(32))
  })

  test('a rotation under load loses no signature, and may be interrupted and resumed', async () => {
    const users = await Promise.all(Array.from({ length: 12 }, newcomer))
    const second = newKek('second')
    const turned = await app.instance({ keyEncryptionKeys: createKeyEncryptionKeys(second, first) })
    const wallets = async (kek: string) =>
      Number(
        (await query<{ n: bigint }>(app.db, 'select count(*) as n from wallet where kek_id = $1', [kek]))[0]
          ?.n,
      )
    const before = await wallets('first')

    let rotating = true
    let signatures = 0
    const sign = async (user: User) => {
      for (let turn = 0; rotating || turn < 3; turn++) {
        const { intent, receipt } = await allowed(user)
        const { signature } = await signerOf(turned).signBatch(intent, receipt)
        const hash = batchHash(intent.batch)
        assert.equal(await recoverAddress({ hash, signature: signature as `0x${string}` }), user.own)
        signatures += 1
      }
    }
    const load = Promise.all(users.map(sign))
    const another = await app.instance({ keyEncryptionKeys: createKeyEncryptionKeys(second, first) })
    const cut = await turned.keystore.rewrap(app.db, { limit: 3 })
    assert.equal(cut.rewrapped, 3)
    const through = async ({ keystore }: Pick<IdentityApp, 'keystore'>) => {
      const broken: string[] = []
      for (let after: string | null | undefined; after !== null; ) {
        const some = await keystore.rewrap(app.db, { after: after ?? null, limit: 5 })
        broken.push(...some.broken)
        after = some.next
      }
      return broken
    }
    const [broken] = await Promise.all([through(turned), through(another)])
    rotating = false
    await load
    assert.ok(signatures >= users.length * 3)
    assert.deepEqual(broken, moved)
    assert.deepEqual([await wallets('first'), await wallets('second')], [1, before - 1])
    const alone = await app.instance({ keyEncryptionKeys: createKeyEncryptionKeys(second) })
    const { intent, receipt } = await allowed(users[0] as User)
    assert.match((await signerOf(alone).signBatch(intent, receipt)).signature, /^0x/)
  })
})
