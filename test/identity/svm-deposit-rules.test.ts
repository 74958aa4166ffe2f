/** Deposits at Relay's program, as custody reads them in the bytes that it signs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertSvmIntent, type SigningSvmChain } from '#engines/custody/svm-rules.ts'
import { chainList } from '#features/chains/chain-list.ts'
import type { SolanaChainRow } from '#kernel/money/chains.ts'
import type { SvmDeposit, SvmInstruction, SvmIntent } from '#kernel/task/signer.ts'
import { base58 } from '#upstreams/solana/base58.ts'
import { feePayerViolation } from '#upstreams/solana/fee-payer-rule.ts'
import { computeLimit, computePrice, depositAtDepository } from '#upstreams/solana/instruction-builder.ts'
import { svmDecoder } from '#upstreams/solana/instruction-decoder.ts'
import { compileMessage, decodeMessage } from '#upstreams/solana/message.ts'
import { deriveTokenAccount } from '#upstreams/solana/program-address.ts'
import { systemProgram, token2022Program, tokenProgram } from '#upstreams/solana/program-ids.ts'

const key = (fill: number) => base58(new Uint8Array(32).fill(fill))
const [own, sponsor, stranger, table] = [1, 2, 4, 5].map(key) as [string, string, string, string]
const solanaId = '7565164'
const row = chainList({ urls: { [solanaId]: 'http://solana' }, finality: 'local' }).find(
  (each): each is SolanaChainRow => each.family === 'solana',
)!
const depository = row.depository!
const usdc = row.tokens[0]!
const bonk = row.tokens[1]!
const orderId = `0x${'0e'.repeat(32)}`
const units = 31_000_000n
const foreign = deriveTokenAccount(stranger, usdc.address, tokenProgram)

const chain: SigningSvmChain = {
  chainId: solanaId,
  feePayers: [sponsor],
  native: systemProgram,
  maxUnits: { [usdc.address]: units, [systemProgram]: units },
  programs: [],
  depository,
  maxPriorityLamports: 1_000_000n,
}
const deposit = (change: Partial<SvmDeposit> = {}): SvmDeposit => ({
  ...depository,
  sender: own,
  depositor: own,
  token: null,
  amountUnits: units,
  depositId: orderId,
  ...change,
})
const tokenDeposit = (
  change: Partial<NonNullable<SvmDeposit['token']>> = {},
  parts: Partial<SvmDeposit> = {},
) =>
  deposit({
    token: {
      mint: usdc.address,
      tokenProgram,
      source: deriveTokenAccount(own, usdc.address, tokenProgram),
      vaultAccount: deriveTokenAccount(depository.vault, usdc.address, tokenProgram),
      ...change,
    },
    ...parts,
  })
const intent = (instructions: SvmInstruction[], change: Partial<SvmIntent> = {}): SvmIntent => ({
  type: 'svm_transaction',
  userId: 'user',
  taskId: 'task',
  operation: 'swap',
  chainId: solanaId,
  tokens: [usdc.address],
  recipients: [depository.vault],
  usdMicros: 1n,
  exit: false,
  account: own,
  feePayer: sponsor,
  spends: [
    { token: usdc.address, amountUnits: units, to: depository.vault },
    { token: systemProgram, amountUnits: units, to: depository.vault },
  ],
  message: Buffer.from(
    compileMessage({ feePayer: sponsor, instructions, tables: [], staticAddresses: [], blockhash: key(9) }),
  ).toString('base64'),
  lastValidBlockHeight: 1n,
  ...change,
})
const ruleOf = (given: SvmIntent, custody: SigningSvmChain = chain) => {
  try {
    assertSvmIntent({ intent: given, own, chain: custody, decoder: svmDecoder })
  } catch (fault) {
    return (fault as { extras?: { rule?: string } }).extras?.rule
  }
  return 'signed'
}
const sent = (...deposits: SvmDeposit[]) =>
  intent([computeLimit(200_000), computePrice(1_000n), ...deposits.map(depositAtDepository)])

test('custody signs a deposit of the user at the vault, and the fee payer pays for it', () => {
  assert.equal(ruleOf(sent(deposit())), 'signed')
  assert.equal(ruleOf(sent(tokenDeposit())), 'signed')
  assert.equal(ruleOf(sent(deposit(), tokenDeposit())), 'signed')
  for (const given of [sent(deposit()), sent(tokenDeposit())])
    assert.equal(feePayerViolation(decodeMessage(Buffer.from(given.message, 'base64')), sponsor), undefined)
})

test('custody refuses every deposit that is not of the user, or not at the configured vault', () => {
  const cases: [SvmIntent, string][] = [
    [sent(deposit({ program: stranger })), 'signer_program'],
    [sent(deposit({ state: stranger })), 'signer_depository'],
    [sent(deposit({ vault: stranger })), 'signer_depository'],
    [sent(deposit({ sender: stranger })), 'signer_signers'],
    [sent(deposit({ sender: sponsor }), tokenDeposit()), 'signer_source'],
    [sent(deposit({ depositor: stranger })), 'signer_depositor'],
    [sent(deposit({ depositor: sponsor })), 'signer_depositor'],
    [sent(deposit({ amountUnits: 0n })), 'signer_amount'],
    [sent(deposit({ amountUnits: units + 1n })), 'signer_spend'],
    [sent(deposit(), deposit({ amountUnits: 1n })), 'signer_spend'],
    [sent(tokenDeposit({}, { amountUnits: units + 1n })), 'signer_spend'],
    [sent(tokenDeposit({ source: foreign })), 'signer_source'],
    [sent(tokenDeposit({ vaultAccount: foreign })), 'signer_depository'],
    [sent(tokenDeposit({ mint: bonk.address })), 'signer_source'],
    [sent(tokenDeposit({ tokenProgram: token2022Program })), 'signer_source'],
    [sent(tokenDeposit({ tokenProgram: stranger })), 'signer_program'],
    [{ ...sent(deposit()), recipients: [] }, 'signer_recipient'],
    [{ ...sent(deposit()), spends: [] }, 'signer_spend'],
  ]
  for (const [given, rule] of cases) assert.equal(ruleOf(given), rule)
  const bonks = tokenDeposit({
    mint: bonk.address,
    source: deriveTokenAccount(own, bonk.address, tokenProgram),
    vaultAccount: deriveTokenAccount(depository.vault, bonk.address, tokenProgram),
  })
  const spends = [{ token: bonk.address, amountUnits: units, to: depository.vault }]
  assert.equal(ruleOf({ ...sent(bonks), spends }), 'signer_token')
  const more = units + 1n
  const generous = { spends: [{ token: systemProgram, amountUnits: more, to: depository.vault }] }
  assert.equal(ruleOf({ ...sent(deposit({ amountUnits: more })), ...generous }), 'signer_cap')
  assert.equal(ruleOf(sent(deposit()), { ...chain, depository: undefined }), 'signer_program')
  const other = { ...depository, program: stranger }
  assert.equal(ruleOf(sent(deposit()), { ...chain, depository: other }), 'signer_program')
})

test('custody reads no deposit that takes an account from a lookup table', () => {
  const accounts = [
    depository.state,
    depository.vault,
    usdc.address,
    deriveTokenAccount(depository.vault, usdc.address, tokenProgram),
  ]
  for (const [name, given] of [
    ['SOL', deposit()],
    ['a token', tokenDeposit()],
  ] as const) {
    const message = compileMessage({
      feePayer: sponsor,
      instructions: [depositAtDepository(given)],
      tables: [{ address: table, addresses: accounts }],
      staticAddresses: [],
      blockhash: key(9),
    })
    assert.ok(decodeMessage(message).lookups.length > 0, name)
    assert.equal(
      ruleOf(intent([], { message: Buffer.from(message).toString('base64') })),
      'signer_program',
      name,
    )
  }
})
