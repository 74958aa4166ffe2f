import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type Address,
  address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compileTransactionMessage,
  compressTransactionMessageUsingAddressLookupTables,
  createSolanaRpc,
  createTransactionMessage,
  fetchAddressesForLookupTables,
  generateKeyPairSigner,
  getAddressEncoder,
  getBase64Decoder,
  getBase64EncodedWireTransaction,
  getCompiledTransactionMessageEncoder,
  getProgramDerivedAddress,
  getSignatureFromTransaction,
  getU64Encoder,
  type Instruction,
  isSolanaError,
  type KeyPairSigner,
  lamports,
  pipe,
  type Signature,
  SOLANA_ERROR__JSON_RPC__INVALID_PARAMS,
  SOLANA_ERROR__JSON_RPC__METHOD_NOT_FOUND,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
  SOLANA_ERROR__TRANSACTION_ERROR__ALREADY_PROCESSED,
  SOLANA_ERROR__TRANSACTION_ERROR__BLOCKHASH_NOT_FOUND,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit'
import { getTransferSolInstruction } from '@solana-program/system'
import {
  fetchMint,
  fetchToken,
  findAssociatedTokenPda,
  getCreateAssociatedTokenIdempotentInstruction,
  getTransferCheckedInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from '@solana-program/token'

const usdc = address('EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v')
const bonk = address('DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263')
const pyusd = address('2b1kV6DkPAnxd5ixfnxCpjxmKwqjjaYmCZfHsFu24GXo')
const token2022 = address('TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb')
const u64Max = 2n ** 64n - 1n
const slotSeconds = 0.4
/** A transaction that was just sent is not confirmed yet. */
const now = { commitment: 'processed' } as const
/** The error of the system program when lamports are missing, in the client's own integers. */
const customError = { InstructionError: [0n, { Custom: 1n }] }

const connect = (url: string) => createSolanaRpc(url)

type World = {
  url: string
  rpc: ReturnType<typeof connect>
  process: ChildProcess
  post: (path: string, body: unknown) => Promise<{ status: number; body: Record<string, unknown> }>
}

const start = async (dataDir: string, ...flags: string[]): Promise<World> => {
  const args = ['world/solana/process.ts', '--data-dir', dataDir, '--port', '0', ...flags]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  const [line] = (await once(lines, 'line', { signal: AbortSignal.timeout(10_000) })) as [string]
  const { ready, port } = JSON.parse(line) as { ready: boolean; port: number }
  assert.equal(ready, true)
  const url = `http://127.0.0.1:${port}`
  const post = async (path: string, body: unknown) => {
    const answer = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  return { url, rpc: connect(url), process: child, post }
}

const stop = async (world: World, signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> => {
  const exited = once(world.process, 'exit')
  world.process.kill(signal)
  const [code] = (await exited) as [number | null]
  return code
}

const until = async (what: string, condition: () => Promise<boolean>): Promise<void> => {
  const deadline = Date.now() + 30_000
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`${what} did not happen in time`)
    await pause(20)
  }
}

const advance = (world: World, slots: number) =>
  world.post('/clock', { advance_seconds: slots * slotSeconds })

const mint = async (
  world: World,
  owner: Address,
  symbol: string,
  amountUnits: bigint,
): Promise<Signature> => {
  const { status, body } = await world.post('/mint', {
    address: owner,
    symbol,
    amount_units: amountUnits.toString(),
  })
  assert.equal(status, 200, JSON.stringify(body))
  return body.signature as Signature
}

type Lifetime = { blockhash: Blockhash; lastValidBlockHeight: bigint }

const compose = (payer: KeyPairSigner, instructions: Instruction[], lifetime: Lifetime) =>
  pipe(
    createTransactionMessage({ version: 0 }),
    (message) => setTransactionMessageFeePayerSigner(payer, message),
    (message) => setTransactionMessageLifetimeUsingBlockhash(lifetime, message),
    (message) => appendTransactionMessageInstructions(instructions, message),
  )

const signed = async (world: World, payer: KeyPairSigner, instructions: Instruction[]) => {
  const { value } = await world.rpc.getLatestBlockhash().send()
  const transaction = await signTransactionMessageWithSigners(compose(payer, instructions, value))
  return {
    wire: getBase64EncodedWireTransaction(transaction),
    signature: getSignatureFromTransaction(transaction),
  }
}
type Signed = Awaited<ReturnType<typeof signed>>

const send = (world: World, { wire }: Signed, skipPreflight = false) =>
  world.rpc.sendTransaction(wire, { encoding: 'base64', skipPreflight }).send()

const balance = async (world: World, owner: Address): Promise<bigint> =>
  (await world.rpc.getBalance(owner, now).send()).value

const transferSol = (source: KeyPairSigner, destination: Address, amount: bigint) =>
  getTransferSolInstruction({ source, destination, amount })

const tokenAccount = async (owner: Address, token: Address, tokenProgram: Address = TOKEN_PROGRAM_ADDRESS) =>
  (await findAssociatedTokenPda({ owner, mint: token, tokenProgram }))[0]

const tokenUnits = async (world: World, account: Address): Promise<string> =>
  (await world.rpc.getTokenAccountBalance(account, now).send()).value.amount

/** Creates the receiver's account at the payer's cost and moves tokens; the owner needs no SOL. */
const tokenTransfer = async (
  payer: KeyPairSigner,
  owner: KeyPairSigner,
  to: Address,
  token: Address,
  amount: bigint,
  tokenProgram: Address = TOKEN_PROGRAM_ADDRESS,
): Promise<Instruction[]> => {
  const source = await tokenAccount(owner.address, token, tokenProgram)
  const destination = await tokenAccount(to, token, tokenProgram)
  return [
    getCreateAssociatedTokenIdempotentInstruction({
      payer,
      ata: destination,
      owner: to,
      mint: token,
      tokenProgram,
    }),
    getTransferCheckedInstruction(
      { source, mint: token, destination, authority: owner, amount, decimals: 6 },
      { programAddress: tokenProgram },
    ),
  ]
}

const funded = async (world: World, sol = 10n): Promise<KeyPairSigner> => {
  const signer = await generateKeyPairSigner()
  await world.rpc.requestAirdrop(signer.address, lamports(sol * 1_000_000_000n)).send()
  return signer
}

const refusedAs = (code: Parameters<typeof isSolanaError>[1]) => (error: unknown) => {
  assert.ok(
    isSolanaError(error, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE),
    String(error),
  )
  assert.ok(isSolanaError(error.cause, code), String(error.cause))
  return true
}

describe('the local Solana speaks to the official client', { timeout: 60_000 }, () => {
  let dataDir: string
  let world: World

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'world-solana-'))
    world = await start(dataDir)
  })
  after(async () => {
    if (world.process.exitCode === null) await stop(world)
    await rm(dataDir, { recursive: true, force: true })
  })

  it('grants lamports and reports the state of the chain', async () => {
    const user = await funded(world, 3n)
    assert.equal(await balance(world, user.address), 3_000_000_000n)
    assert.equal(await balance(world, (await generateKeyPairSigner()).address), 0n)
    assert.equal(await world.rpc.getHealth().send(), 'ok')
    const [slot, height, epoch] = await Promise.all([
      world.rpc.getSlot({ commitment: 'finalized' }).send(),
      world.rpc.getBlockHeight({ commitment: 'finalized' }).send(),
      world.rpc.getEpochInfo({ commitment: 'processed' }).send(),
    ])
    assert.ok(slot > height, 'slots and heights must differ, as they do on mainnet')
    assert.ok(epoch.absoluteSlot >= slot + 32n)
    assert.equal(await world.rpc.getMinimumBalanceForRentExemption(165n).send(), 2_039_280n)
    assert.notEqual(await world.rpc.getGenesisHash().send(), '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d')
    assert.equal((await world.rpc.getRecentPrioritizationFees().send()).length, 150)
    assert.ok((await world.rpc.getVersion().send())['solana-core'].length > 0)
  })

  it('moves slots and blockhashes every 400 ms of the world clock', async () => {
    const latest = () => world.rpc.getLatestBlockhash({ commitment: 'processed' }).send()
    const first = await latest()
    await advance(world, 3)
    const second = await latest()
    assert.notEqual(second.value.blockhash, first.value.blockhash)
    const moved = second.context.slot - first.context.slot
    assert.ok(moved >= 3n)
    assert.equal(second.value.lastValidBlockHeight - first.value.lastValidBlockHeight, moved)
    assert.equal((await world.rpc.isBlockhashValid(first.value.blockhash).send()).value, true)
  })

  it('mints a token and lets a user without any SOL send it while a sponsor pays', async () => {
    const [sponsor, user] = [await funded(world), await generateKeyPairSigner()]
    const friend = (await generateKeyPairSigner()).address
    await mint(world, user.address, 'USDC', 5_000_000n)
    const transfer = await signed(
      world,
      sponsor,
      await tokenTransfer(sponsor, user, friend, usdc, 1_250_000n),
    )
    await send(world, transfer)
    assert.equal(await tokenUnits(world, await tokenAccount(user.address, usdc)), '3750000')
    assert.equal(await tokenUnits(world, await tokenAccount(friend, usdc)), '1250000')
    assert.equal(await balance(world, user.address), 0n)
    assert.equal(await balance(world, sponsor.address), 10_000_000_000n - 10_000n - 2_039_280n)
    const held = await fetchToken(world.rpc, await tokenAccount(friend, usdc), now)
    assert.equal(held.data.amount, 1_250_000n)
    assert.equal((await fetchMint(world.rpc, usdc)).data.decimals, 6)
  })

  it('moves a Token-2022 token whose accounts are longer than 165 bytes', async () => {
    const [sponsor, user] = [await funded(world), await generateKeyPairSigner()]
    const friend = (await generateKeyPairSigner()).address
    await mint(world, user.address, 'PYUSD', 9_000_000n)
    const instructions = await tokenTransfer(sponsor, user, friend, pyusd, 4_000_000n, token2022)
    await send(world, await signed(world, sponsor, instructions))
    const account = await tokenAccount(friend, pyusd, token2022)
    assert.equal(await tokenUnits(world, account), '4000000')
    const { value } = await world.rpc.getAccountInfo(account, { ...now, encoding: 'base64' }).send()
    assert.ok(value && value.space > 165n)
    const parsed = await world.rpc.getAccountInfo(pyusd, { encoding: 'jsonParsed' }).send()
    const text = JSON.stringify(parsed.value?.data, (_key, item) =>
      typeof item === 'bigint' ? `${item}` : item,
    )
    for (const extension of ['transferFeeConfig', 'metadataPointer', 'tokenMetadata']) {
      assert.ok(text.includes(`"extension":"${extension}"`), text)
    }
  })

  it('lists the token accounts of an owner under both token programs', async () => {
    const owner = (await generateKeyPairSigner()).address
    const bonkUnits = 3n * 10n ** 18n
    await mint(world, owner, 'USDC', 1n)
    await mint(world, owner, 'BONK', bonkUnits)
    await mint(world, owner, 'PYUSD', 3n)
    const list = async (filter: { programId: Address } | { mint: Address }) => {
      const { value } = await world.rpc
        .getTokenAccountsByOwner(owner, filter, { ...now, encoding: 'jsonParsed' })
        .send()
      const infos = value.map(({ account }) => account.data.parsed.info)
      return Object.fromEntries(infos.map(({ mint: token, tokenAmount }) => [token, tokenAmount.amount]))
    }
    const classic = { [usdc]: '1', [bonk]: `${bonkUnits}` }
    assert.deepEqual(await list({ programId: TOKEN_PROGRAM_ADDRESS }), classic)
    assert.deepEqual(await list({ programId: token2022 }), { [pyusd]: '3' })
    assert.deepEqual(await list({ mint: usdc }), { [usdc]: '1' })
    const largest = await world.rpc.getTokenLargestAccounts(bonk, now).send()
    assert.equal(largest.value[1]?.amount, `${bonkUnits}`)
    assert.equal((await world.rpc.getTokenSupply(bonk, now).send()).value.amount, `${10n ** 19n}`)
    const found = await world.rpc
      .getProgramAccounts(TOKEN_PROGRAM_ADDRESS, {
        ...now,
        encoding: 'base64',
        filters: [{ dataSize: 165n }, { memcmp: { offset: 32n, bytes: owner as never, encoding: 'base58' } }],
      })
      .send()
    assert.equal(found.length, 2)
  })

  it('grants once per id, also for repeated requests', async () => {
    const owner = (await generateKeyPairSigner()).address
    const grant = { address: owner, mint: 'native', amount_units: '2000000', id: `gift-${owner}` }
    const [first, again] = [await world.post('/mint', grant), await world.post('/mint', grant)]
    assert.deepEqual(first.body, again.body)
    assert.equal((await world.post('/mint', { ...grant, mint: 'NOPE', id: 'x' })).status, 400)
    assert.equal(await balance(world, owner), 2_000_000n)
  })

  it('simulates without a change and shows the resulting accounts', async () => {
    const user = await funded(world)
    const friend = (await generateKeyPairSigner()).address
    const { wire } = await signed(world, user, [transferSol(user, friend, 1_000_000_000n)])
    const accounts = { addresses: [friend], encoding: 'base64' as const }
    const { value } = await world.rpc.simulateTransaction(wire, { encoding: 'base64', accounts }).send()
    assert.equal(value.err, null)
    assert.equal(value.accounts?.[0]?.lamports, 1_000_000_000n)
    assert.ok((value.unitsConsumed ?? 0n) > 0n)
    assert.equal(await balance(world, friend), 0n)
    const greedy = await signed(world, user, [transferSol(user, friend, 10n ** 12n)])
    const failed = await world.rpc.simulateTransaction(greedy.wire, { encoding: 'base64' }).send()
    assert.deepEqual(failed.value.err, customError)
    assert.ok(failed.value.logs?.some((line) => line.includes('insufficient lamports')))
  })

  it('shows a simulated account that does not exist as empty, and no more accounts than the transaction names', async () => {
    const user = await funded(world)
    const [friend, ...strangers] = await Promise.all(
      Array.from({ length: 4 }, async () => (await generateKeyPairSigner()).address),
    )
    const budget = address('ComputeBudget111111111111111111111111111111')
    const limit: Instruction = {
      programAddress: budget,
      accounts: [{ address: friend!, role: 0 }],
      data: Uint8Array.of(2, 232, 3, 0, 0),
    }
    const { wire } = await signed(world, user, [limit])
    const simulate = (addresses: Address[]) =>
      world.rpc
        .simulateTransaction(wire, { encoding: 'base64', accounts: { addresses, encoding: 'base64' } })
        .send()
    const { value } = await simulate([friend!, strangers[0]!])
    assert.equal(value.err, null, 'the budget program takes no notice of accounts')
    assert.equal(value.accounts?.[0]?.lamports, 0n, 'the runtime has loaded an empty account')
    assert.equal(value.accounts?.[1], null)
    const four = [friend!, ...strangers]
    await assert.rejects(simulate(four), /Too many accounts provided; max 3/)
    const call = { jsonrpc: '2.0', id: 1, method: 'simulateTransaction' }
    const configs = [
      [{ addresses: four, encoding: 'base64' }, 'Too many accounts provided; max 3'],
      [{ addresses: [friend], encoding: 'base58' }, 'base58 encoding not supported'],
    ]
    for (const [accounts, message] of configs) {
      const { body } = await world.post('/', { ...call, params: [wire, { encoding: 'base64', accounts }] })
      assert.deepEqual(body.error, { code: -32602, message })
    }
  })

  it('rejects a transaction that would fail with the error and its logs', async () => {
    const user = await funded(world)
    const greedy = await signed(world, user, [transferSol(user, user.address, 10n ** 12n)])
    const { body } = await world.post('/', {
      jsonrpc: '2.0',
      id: 7,
      method: 'sendTransaction',
      params: [greedy.wire, { encoding: 'base64' }],
    })
    const error = body.error as { code: number; message: string; data: { err: unknown; logs: string[] } }
    assert.equal(error.code, -32002)
    assert.match(
      error.message,
      /^Transaction simulation failed: Error processing Instruction 0: custom program error: 0x1$/,
    )
    assert.deepEqual(error.data.err, { InstructionError: [0, { Custom: 1 }] })
    assert.ok(error.data.logs.length > 0)
    assert.equal(await balance(world, user.address), 10_000_000_000n)
  })

  it('charges the fee and records the error when a failing transaction skips its preflight', async () => {
    const user = await funded(world)
    const greedy = await signed(world, user, [transferSol(user, user.address, 10n ** 12n)])
    assert.equal(await send(world, greedy, true), greedy.signature)
    assert.equal(await balance(world, user.address), 10_000_000_000n - 5_000n)
    const { value } = await world.rpc.getSignatureStatuses([greedy.signature]).send()
    assert.deepEqual(value[0]?.err, customError)
  })

  it('rejects a forged signature', async () => {
    const user = await funded(world)
    const { wire } = await signed(world, user, [transferSol(user, user.address, 1n)])
    const bytes = Buffer.from(wire, 'base64')
    bytes.writeUInt8(bytes.readUInt8(9) ^ 1, 9)
    for (const skipPreflight of [false, true]) {
      const params = [bytes.toString('base64'), { encoding: 'base64', skipPreflight }]
      const { body } = await world.post('/', { jsonrpc: '2.0', id: 1, method: 'sendTransaction', params })
      assert.equal((body.error as { code: number }).code, -32003)
    }
  })

  it('runs a message once even when its payer signs it a second time', async () => {
    const user = await funded(world)
    const sent = await signed(world, user, [transferSol(user, user.address, 1n)])
    await send(world, sent)
    const bytes = Buffer.from(sent.wire, 'base64')
    bytes.writeUInt8(bytes.readUInt8(9) ^ 1, 9)
    const wire = bytes.toString('base64') as typeof sent.wire
    await assert.rejects(
      send(world, { ...sent, wire }),
      refusedAs(SOLANA_ERROR__TRANSACTION_ERROR__ALREADY_PROCESSED),
    )
  })

  it('rejects a blockhash once 150 slots have passed, and not before', async () => {
    const user = await funded(world)
    const friend = (await generateKeyPairSigner()).address
    const early = await signed(world, user, [transferSol(user, friend, 5_000_000n)])
    const late = await signed(world, user, [transferSol(user, friend, 6_000_000n)])
    await advance(world, 100)
    await send(world, early)
    await advance(world, 52)
    await assert.rejects(send(world, late), refusedAs(SOLANA_ERROR__TRANSACTION_ERROR__BLOCKHASH_NOT_FOUND))
    await send(world, late, true)
    assert.equal(await balance(world, friend), 5_000_000n)
    const message = compileTransactionMessage(
      compose(user, [], (await world.rpc.getLatestBlockhash().send()).value),
    )
    const text = getBase64Decoder().decode(getCompiledTransactionMessageEncoder().encode(message))
    const fee = await world.rpc
      .getFeeForMessage(text as Parameters<typeof world.rpc.getFeeForMessage>[0])
      .send()
    assert.equal(fee.value, 5_000n)
  })

  it('lets a signature advance from processed to finalized in 32 slots', async () => {
    const user = await funded(world)
    const sent = await signed(world, user, [transferSol(user, user.address, 1n)])
    await send(world, sent)
    const status = async () => (await world.rpc.getSignatureStatuses([sent.signature]).send()).value[0]
    assert.equal((await status())?.confirmations === null, false)
    await advance(world, 10)
    const confirmed = await status()
    assert.equal(confirmed?.confirmationStatus, 'confirmed')
    assert.ok((confirmed?.confirmations ?? 0n) >= 10n)
    await advance(world, 22)
    const finalized = await status()
    assert.equal(finalized?.confirmationStatus, 'finalized')
    assert.equal(finalized?.confirmations, null)
    await advance(world, 200)
    assert.equal(await status(), null, 'only a search finds old signatures')
    const searched = await world.rpc
      .getSignatureStatuses([sent.signature], { searchTransactionHistory: true })
      .send()
    assert.equal(searched.value[0]?.confirmationStatus, 'finalized')
  })

  it('stores transactions with balances, fee, time and logs, newest first per address', async () => {
    const [sponsor, user] = [await funded(world), await generateKeyPairSigner()]
    const friend = (await generateKeyPairSigner()).address
    await mint(world, user.address, 'USDC', 100n)
    const sent: Signature[] = []
    for (const amount of [10n, 20n, 30n]) {
      const transfer = await signed(world, sponsor, await tokenTransfer(sponsor, user, friend, usdc, amount))
      sent.unshift(await send(world, transfer))
    }
    const newest = sent[0] as Signature
    const config = { encoding: 'jsonParsed', maxSupportedTransactionVersion: 0 } as const
    assert.equal(await world.rpc.getTransaction(newest, { ...config, commitment: 'finalized' }).send(), null)
    await advance(world, 1)
    const found = await world.rpc.getTransaction(newest, { ...config, commitment: 'confirmed' }).send()
    assert.ok(found?.meta)
    assert.equal(found.meta.fee, 10_000n)
    assert.ok(Math.abs(Number(found.blockTime) - Date.now() / 1000) < 10_000)
    const received = (list: typeof found.meta.preTokenBalances) =>
      list?.find(({ owner }) => owner === friend)?.uiTokenAmount.amount
    assert.equal(received(found.meta.preTokenBalances), '30')
    assert.equal(received(found.meta.postTokenBalances), '60')
    const pre = found.meta.preBalances.reduce((sum, one) => sum + one, 0n)
    assert.equal(
      found.meta.postBalances.reduce((sum, one) => sum + one, 0n),
      pre - 10_000n,
    )
    const parsed = found.transaction.message.instructions[1]
    assert.ok(parsed && 'parsed' in parsed && parsed.parsed.type === 'transferChecked')
    await assert.rejects(world.rpc.getTransaction(newest, { encoding: 'json' }).send(), /version/i)

    const history = (options: { limit?: number; before?: Signature; until?: Signature } = {}) =>
      world.rpc.getSignaturesForAddress(friend, { ...options, commitment: 'confirmed' }).send()
    assert.deepEqual(
      (await history()).map((row) => row.signature),
      sent,
    )
    assert.deepEqual(
      (await history({ limit: 1, before: newest })).map((row) => row.signature),
      [sent[1]],
    )
    assert.deepEqual(
      (await history({ until: sent[1] as Signature })).map((row) => row.signature),
      [newest],
    )
  })

  it('runs a v0 transaction through an address lookup table', async () => {
    const user = await funded(world)
    const friend = (await generateKeyPairSigner()).address
    const program = address('AddressLookupTab1e1111111111111111111111111')
    const slot = (await world.rpc.getSlot({ commitment: 'finalized' }).send()) as bigint
    const seeds = [getAddressEncoder().encode(user.address), getU64Encoder().encode(slot)]
    const [table, bump] = await getProgramDerivedAddress({ programAddress: program, seeds })
    const roles = [
      { address: table, role: 1 },
      { address: user.address, role: 2 },
      { address: user.address, role: 3 },
      { address: address('11111111111111111111111111111111'), role: 0 },
    ]
    const bytes = (part: Iterable<number>) => Uint8Array.from(part)
    const create = bytes([0, 0, 0, 0, ...getU64Encoder().encode(slot), bump])
    const extend = bytes([2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, ...getAddressEncoder().encode(friend)])
    const build = [create, extend].map(
      (data): Instruction => ({ programAddress: program, accounts: roles, data }),
    )
    await send(world, await signed(world, user, build))
    await advance(world, 2)
    const { value } = await world.rpc.getLatestBlockhash().send()
    const plain = compose(user, [transferSol(user, friend, 9_000_000n)], value)
    const tables = await fetchAddressesForLookupTables([table], world.rpc)
    const transaction = await signTransactionMessageWithSigners(
      compressTransactionMessageUsingAddressLookupTables(plain, tables),
    )
    const sent = await world.rpc
      .sendTransaction(getBase64EncodedWireTransaction(transaction), { encoding: 'base64' })
      .send()
    assert.equal(await balance(world, friend), 9_000_000n)
    await advance(world, 1)
    const found = await world.rpc
      .getTransaction(sent, { commitment: 'confirmed', encoding: 'json', maxSupportedTransactionVersion: 0 })
      .send()
    assert.deepEqual(found?.meta?.loadedAddresses?.writable, [friend])
  })

  it('carries every digit of a u64 through JSON', async () => {
    const owner = (await generateKeyPairSigner()).address
    await mint(
      world,
      owner,
      'USDC',
      u64Max -
        (await world.rpc
          .getTokenSupply(usdc, now)
          .send()
          .then(({ value }) => BigInt(value.amount))),
    )
    const supply = (await fetchMint(world.rpc, usdc, now)).data.supply
    assert.equal(supply, u64Max)
    const raw = await (
      await fetch(world.url, {
        method: 'POST',
        body: `{"jsonrpc":"2.0","id":9007199254740993,"method":"getAccountInfo","params":["${usdc}",{"encoding":"base64"}]}`,
      })
    ).text()
    assert.match(raw, /"rentEpoch":18446744073709551615[,}]/)
    assert.match(raw, /"id":9007199254740993[,}]/)
    const asked = await fetch(world.url, {
      method: 'POST',
      body: `{"jsonrpc":"2.0","id":1,"method":"requestAirdrop","params":["${owner}",${u64Max}]}`,
    })
    assert.match(await asked.text(), new RegExp(`insufficient lamports \\d+, need ${u64Max}`))
  })

  it('renounces the mint authority of fixed-supply tokens, and marks the traps', async () => {
    const listed = (await (await fetch(`${world.url}/tokens`)).json()) as { symbol: string; mint: Address }[]
    const mintOf = (symbol: string) => address(listed.find((token) => token.symbol === symbol)?.mint ?? '')
    const classic = async (symbol: string) => (await fetchMint(world.rpc, mintOf(symbol))).data
    assert.equal((await classic('BONK')).mintAuthority.__option, 'None')
    assert.equal((await classic('JUP')).freezeAuthority.__option, 'None')
    assert.equal((await classic('FRZ')).freezeAuthority.__option, 'Some')
    const extensionsOf = async (symbol: string) => {
      const { value } = await world.rpc.getAccountInfo(mintOf(symbol), { encoding: 'jsonParsed' }).send()
      assert.ok(value && 'parsed' in value.data)
      const info = value.data.parsed.info as { extensions: { extension: string; state?: object }[] }
      return new Map(info.extensions.map(({ extension, state }) => [extension, state]))
    }
    assert.ok((await extensionsOf('SEIZE')).has('permanentDelegate'))
    const fee = (await extensionsOf('TAXED')).get('transferFeeConfig') as { newerTransferFee: object }
    assert.deepEqual(fee.newerTransferFee, { epoch: 0n, maximumFee: 10n ** 15n, transferFeeBasisPoints: 500 })
  })

  it('names unknown methods and bad parameters, and bounds its input', async () => {
    const call = async (method: string, params: unknown[]) =>
      ((await world.post('/', { jsonrpc: '2.0', id: 1, method, params })).body.error as { code: number }).code
    assert.equal(await call('getNothing', []), SOLANA_ERROR__JSON_RPC__METHOD_NOT_FOUND)
    assert.equal(await call('getBalance', ['short']), SOLANA_ERROR__JSON_RPC__INVALID_PARAMS)
    assert.equal(await call('getBalance', []), SOLANA_ERROR__JSON_RPC__INVALID_PARAMS)
    assert.equal(await call('getMultipleAccounts', [Array(101).fill(usdc)]), -32602)
    assert.equal(await call('sendTransaction', ['AAAA', { encoding: 'base64' }]), -32602)
    const health = { jsonrpc: '2.0', id: 1, method: 'getHealth' }
    const batch = await world.post('/', [health, { ...health, id: 2, method: 'nope' }])
    assert.deepEqual(
      (batch.body as unknown as { id: number }[]).map(({ id }) => id),
      [1, 2],
    )
    assert.equal(
      ((await world.post('/', Array(101).fill(health))).body.error as { code: number }).code,
      -32600,
    )
    assert.equal((await world.post('/', 'x'.repeat(1_100_000))).status, 413)
    const many = await world.rpc.getMultipleAccounts([usdc, (await generateKeyPairSigner()).address]).send()
    assert.deepEqual(
      many.value.map((account) => account?.owner),
      [TOKEN_PROGRAM_ADDRESS, undefined],
    )
  })

  it('runs a resent transaction once: asked at once, after 2,000 others, after a restart and after expiry', async () => {
    const user = await funded(world)
    const friend = (await generateKeyPairSigner()).address
    const sent = await signed(world, user, [transferSol(user, friend, 4_000_000n)])
    await send(world, sent)
    const isRefused = async () => {
      await assert.rejects(send(world, sent), refusedAs(SOLANA_ERROR__TRANSACTION_ERROR__ALREADY_PROCESSED))
      // Without preflight a node returns the signature, and nothing runs again.
      await send(world, sent, true)
      assert.equal(await balance(world, friend), 4_000_000n)
    }
    await isRefused()
    const airdrop = { jsonrpc: '2.0', id: 1, method: 'requestAirdrop', params: [user.address, 1_000_000] }
    for (let batch = 0; batch < 20; batch++) await world.post('/', Array(100).fill(airdrop))
    assert.equal(await balance(world, user.address), 10_000_000_000n - 4_005_000n + 2_000n * 1_000_000n)
    await isRefused()
    assert.equal(await stop(world), 0)
    world = await start(dataDir)
    await isRefused()
    assert.equal(await balance(world, user.address), 10_000_000_000n - 4_005_000n + 2_000n * 1_000_000n)
    await advance(world, 1_000)
    await isRefused()
  })

  it('restores what it answered when it is killed, also without a snapshot, and runs it once', async () => {
    await stop(world)
    world = await start(dataDir, '--save-every-ms', '600000')
    const user = await funded(world)
    const genesis = await world.rpc.getGenesisHash().send()
    await advance(world, 1)
    const friend = (await generateKeyPairSigner()).address
    const first = await signed(world, user, [transferSol(user, friend, 3_000_000n)])
    await send(world, first)
    const statusOf = async () => {
      const known = await world.rpc
        .getSignatureStatuses([first.signature], { searchTransactionHistory: true })
        .send()
      return { slot: known.value[0]?.slot, err: known.value[0]?.err }
    }
    const status = await statusOf()
    assert.equal(status.err, null)
    for (const round of [1, 2]) {
      await stop(world, 'SIGKILL')
      world = await start(dataDir, '--save-every-ms', '600000')
      assert.equal(await world.rpc.getGenesisHash().send(), genesis)
      assert.equal(await balance(world, friend), 3_000_000n, `round ${round}`)
      assert.equal(await balance(world, user.address), 10_000_000_000n - 3_005_000n)
      assert.deepEqual(await statusOf(), status)
      await assert.rejects(send(world, first))
    }
    // A kill after the save finds the journal of calls as the previous kill left it, or empty.
    await stop(world)
    world = await start(dataDir)
    assert.equal(await balance(world, friend), 3_000_000n)
  })

  it('saves by itself while it runs, and ends when its starter has ended', async () => {
    await stop(world)
    world = await start(dataDir, '--finality-slots', '2', '--watch-stdin')
    const savedAt = async () => (await stat(join(dataDir, 'solana.sqlite-wal'))).mtimeMs
    const atStart = await savedAt()
    const user = await funded(world)
    await until('a snapshot', async () => (await savedAt()) > atStart)
    // The save is one synchronous piece of the process: once it answers again, the save is complete.
    await world.rpc.getHealth().send()
    await stop(world, 'SIGKILL')
    world = await start(dataDir, '--finality-slots', '2', '--watch-stdin')
    assert.equal(await balance(world, user.address), 10_000_000_000n)
    const again = await world.rpc.requestAirdrop(user.address, lamports(1_000_000n)).send()
    await until('finality after two slots', async () => {
      const { value } = await world.rpc.getSignatureStatuses([again]).send()
      return value[0]?.confirmationStatus === 'finalized'
    })
    const exited = once(world.process, 'exit')
    world.process.stdin?.end()
    assert.deepEqual(await exited, [0, null])
  })
})
