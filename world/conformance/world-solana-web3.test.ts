/** web3.js and spl-token, unmodified, as wallets and most programs on Solana use them. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  createMint,
  getAccount,
  getOrCreateAssociatedTokenAccount,
  mintTo,
  TOKEN_PROGRAM_ID,
  transfer,
} from '@solana/spl-token'
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  NONCE_ACCOUNT_LENGTH,
  NonceAccount,
  type PublicKey,
  SystemProgram,
  sendAndConfirmTransaction,
  Transaction,
} from '@solana/web3.js'
import { startWorld, type World } from '#world/world.ts'

let dataDir = ''
let world: World
let connection: Connection
const opened: number[] = []

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'portico-web3-'))
  world = await startWorld({ dataDir, port: 0, only: ['solana'] })
  connection = new Connection(world.urls.solana, 'confirmed')
})

after(async () => {
  // web3.js reopens its socket by default when it closes.
  const { _rpcWebSocket: socket } = connection as unknown as { _rpcWebSocket: Socket }
  socket.setAutoReconnect(false)
  socket.close()
  await world?.[Symbol.asyncDispose]()
  await rm(dataDir, { recursive: true, force: true })
})

type Socket = { setAutoReconnect(reconnect: boolean): void; close(): void }

const funded = async () => {
  const owner = Keypair.generate()
  const signature = await connection.requestAirdrop(owner.publicKey, 5 * LAMPORTS_PER_SOL)
  await connection.confirmTransaction({ signature, ...(await connection.getLatestBlockhash()) }, 'confirmed')
  return owner
}

const payment = (from: Keypair, to: PublicKey, lamports: number) =>
  new Transaction().add(SystemProgram.transfer({ fromPubkey: from.publicKey, toPubkey: to, lamports }))

const poll = async <T>(what: string, read: () => T | undefined, timeoutMs = 25_000): Promise<T> => {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const found = read()
    if (found !== undefined) return found
    assert.ok(Date.now() < deadline, `${what} did not happen in ${timeoutMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('sendAndConfirmTransaction receives its confirmation by the socket one port above', async () => {
  const payer = await funded()
  const to = Keypair.generate().publicKey
  const signature = await sendAndConfirmTransaction(connection, payment(payer, to, LAMPORTS_PER_SOL), [payer])
  const { value } = await connection.getSignatureStatus(signature)
  assert.equal(value?.err, null)
  assert.equal(await connection.getBalance(to), LAMPORTS_PER_SOL)
})

test('spl-token creates a mint, mints and transfers', async () => {
  const payer = await funded()
  const mint = await createMint(connection, payer, payer.publicKey, null, 6)
  const from = await getOrCreateAssociatedTokenAccount(connection, payer, mint, payer.publicKey)
  await mintTo(connection, payer, mint, from.address, payer, 1_000_000n)
  const to = await getOrCreateAssociatedTokenAccount(connection, payer, mint, Keypair.generate().publicKey)
  await transfer(connection, payer, from.address, to.address, payer, 400_000n)
  assert.equal((await getAccount(connection, to.address)).amount, 400_000n)
  assert.equal((await getAccount(connection, from.address)).amount, 600_000n)
})

test('changes of accounts, logs, programs, slots and roots are delivered', async () => {
  const payer = await funded()
  const to = Keypair.generate().publicKey
  const lamports: number[] = []
  const logged: string[] = []
  const slots: number[] = []
  const roots: number[] = []
  const programs: string[] = []
  opened.push(
    connection.onAccountChange(to, (account) => lamports.push(account.lamports), { commitment: 'processed' }),
    connection.onLogs(payer.publicKey, ({ signature }) => logged.push(signature), 'processed'),
    connection.onSlotChange(({ slot }) => slots.push(slot)),
    connection.onRootChange((root) => roots.push(root)),
    connection.onProgramAccountChange(
      TOKEN_PROGRAM_ID,
      ({ accountId }) => programs.push(accountId.toBase58()),
      { commitment: 'processed' },
    ),
  )
  await poll('the subscriptions are open', () => (slots.length > 1 && roots.length > 1 ? true : undefined))
  const signature = await sendAndConfirmTransaction(connection, payment(payer, to, 3_000_000), [payer])
  await poll('the account', () => lamports.find((each) => each === 3_000_000))
  await poll('the logs', () => logged.find((each) => each === signature))
  const mint = await createMint(connection, payer, payer.publicKey, null, 2)
  await poll('the program', () => programs.find((each) => each === mint.toBase58()))
  assert.ok(slots.every((slot, index) => index === 0 || slot === (slots[index - 1] ?? 0) + 1))
  await connection.removeAccountChangeListener(opened[0] ?? -1)
  await connection.removeOnLogsListener(opened[1] ?? -1)
  await connection.removeSlotChangeListener(opened[2] ?? -1)
  await connection.removeRootChangeListener(opened[3] ?? -1)
  await connection.removeProgramAccountChangeListener(opened[4] ?? -1)
})

test('the same bytes sent again return their signature and run once', async () => {
  const payer = await funded()
  const to = Keypair.generate().publicKey
  const transaction = payment(payer, to, 1_000_000)
  const latest = await connection.getLatestBlockhash()
  transaction.recentBlockhash = latest.blockhash
  transaction.feePayer = payer.publicKey
  transaction.sign(payer)
  const bytes = transaction.serialize()
  const signature = await connection.sendRawTransaction(bytes)
  await connection.confirmTransaction({ signature, ...latest }, 'confirmed')
  assert.equal(await connection.sendRawTransaction(bytes, { skipPreflight: true }), signature)
  await assert.rejects(connection.sendRawTransaction(bytes), /already (been )?processed/i)
  assert.equal(await connection.getBalance(to), 1_000_000)
})

test('a read at each commitment sees what has reached it, and its context names the slot', async () => {
  const payer = await funded()
  const to = Keypair.generate().publicKey
  const transaction = payment(payer, to, 1_000_000)
  transaction.recentBlockhash = (await connection.getLatestBlockhash()).blockhash
  transaction.feePayer = payer.publicKey
  transaction.sign(payer)
  const signature = await connection.sendRawTransaction(transaction.serialize())
  const slotOf = async () => (await connection.getSignatureStatus(signature)).value?.slot ?? 0
  const slot = await slotOf()
  for (const commitment of ['processed', 'confirmed', 'finalized'] as const) {
    const timeoutMs = 30_000
    const deadline = Date.now() + timeoutMs
    for (;;) {
      const { context, value } = await connection.getBalanceAndContext(to, commitment)
      assert.equal(
        value,
        context.slot >= slot ? 1_000_000 : 0,
        `${commitment} at ${context.slot}, sent at ${slot}`,
      )
      if (value > 0) break
      assert.ok(Date.now() < deadline, `${commitment} did not see it in ${timeoutMs} ms`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const behind = (await connection.getBalanceAndContext(to, 'processed')).context.slot - slot
    if (commitment === 'finalized') assert.ok(behind >= 32, `${behind} slots`)
  }
})

test('a transaction under a durable nonce lands once', async () => {
  const payer = await funded()
  const nonce = Keypair.generate()
  const to = Keypair.generate().publicKey
  const lamports = await connection.getMinimumBalanceForRentExemption(NONCE_ACCOUNT_LENGTH)
  const make = SystemProgram.createNonceAccount({
    fromPubkey: payer.publicKey,
    noncePubkey: nonce.publicKey,
    authorizedPubkey: payer.publicKey,
    lamports,
  })
  await sendAndConfirmTransaction(connection, new Transaction().add(make), [payer, nonce])
  const stored = async () => {
    const info = await connection.getAccountInfo(nonce.publicKey)
    assert.ok(info)
    return NonceAccount.fromAccountData(info.data).nonce
  }
  const first = await stored()
  const transaction = new Transaction()
    .add(SystemProgram.nonceAdvance({ noncePubkey: nonce.publicKey, authorizedPubkey: payer.publicKey }))
    .add(SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports: 2_000_000 }))
  transaction.recentBlockhash = first
  transaction.feePayer = payer.publicKey
  transaction.sign(payer)
  // A nonce cannot be used in the slot that set it.
  const slot = await connection.getSlot('processed')
  while ((await connection.getSlot('processed')) <= slot)
    await new Promise((resolve) => setTimeout(resolve, 50))
  const signature = await connection.sendRawTransaction(transaction.serialize())
  const { value } = await connection.confirmTransaction(
    {
      signature,
      nonceAccountPubkey: nonce.publicKey,
      nonceValue: first,
      minContextSlot: await connection.getSlot(),
    },
    'confirmed',
  )
  assert.equal(value.err, null)
  assert.equal(await connection.getBalance(to), 2_000_000)
  assert.notEqual(await stored(), first, 'the used nonce is spent')
  const stale = new Transaction()
    .add(SystemProgram.nonceAdvance({ noncePubkey: nonce.publicKey, authorizedPubkey: payer.publicKey }))
    .add(SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports: 3_000_000 }))
  stale.recentBlockhash = first
  stale.feePayer = payer.publicKey
  stale.sign(payer)
  await assert.rejects(connection.sendRawTransaction(stale.serialize()), /Blockhash not found/)
})

test('blocks, counts and cluster figures are available, and an answer from before a required slot is rejected', async () => {
  const payer = await funded()
  const signature = await sendAndConfirmTransaction(
    connection,
    payment(payer, Keypair.generate().publicKey, 1_000_000),
    [payer],
  )
  const { value } = await connection.getSignatureStatus(signature)
  const slot = value?.slot ?? 0
  const block = await connection.getBlock(slot, {
    maxSupportedTransactionVersion: 0,
    commitment: 'confirmed',
  })
  assert.ok(block?.transactions.some((each) => each.transaction.signatures.includes(signature)))
  assert.ok(Math.abs(((await connection.getBlockTime(slot)) ?? 0) - Date.now() / 1000) < 60)
  assert.deepEqual(await connection.getBlocks(slot - 2, slot), [slot - 2, slot - 1, slot])
  assert.ok((await connection.getTransactionCount()) > 0)
  assert.ok((await connection.getSupply()).value.total > 0)
  assert.equal((await connection.getEpochSchedule()).slotsPerEpoch, 432_000)
  assert.ok(Array.isArray(await connection.getRecentPerformanceSamples(1)))
  assert.equal(typeof (await connection.getSlotLeader()), 'string')
  const far = { commitment: 'confirmed', minContextSlot: slot + 100_000 } as const
  await assert.rejects(connection.getLatestBlockhash(far), /Minimum context slot/)
})
