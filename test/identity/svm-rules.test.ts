/** What custody signs on Solana: the instructions of the intent, and nothing else. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertSvmIntent, type SigningSvmChain } from '#engines/custody/svm-rules.ts'
import type { SvmInstruction, SvmIntent } from '#kernel/task/signer.ts'
import { base58 } from '#upstreams/solana/base58.ts'
import { feePayerViolation } from '#upstreams/solana/fee-payer-rule.ts'
import {
  closeTokenAccount,
  computeLimit,
  computePrice,
  createTokenAccount,
  memo,
  transferLamports,
  transferTokens,
} from '#upstreams/solana/instruction-builder.ts'
import { svmDecoder } from '#upstreams/solana/instruction-decoder.ts'
import { compileMessage, decodeMessage } from '#upstreams/solana/message.ts'
import { deriveTokenAccount } from '#upstreams/solana/program-address.ts'
import { systemProgram, tokenProgram } from '#upstreams/solana/program-ids.ts'

const key = (fill: number) => base58(new Uint8Array(32).fill(fill))
const [own, sponsor, friend, stranger, mint, other, foreign] = [1, 2, 3, 4, 5, 6, 7].map(key) as [
  string,
  string,
  string,
  string,
  string,
  string,
  string,
]
const usdc = { mint, decimals: 6, tokenProgram }

const chain: SigningSvmChain = {
  chainId: '7565164',
  feePayers: [sponsor],
  native: systemProgram,
  maxUnits: { [mint]: 100n, [systemProgram]: 50n },
  programs: [],
  maxPriorityLamports: 1_000n,
}
const intent = (instructions: SvmInstruction[], change: Partial<SvmIntent> = {}): SvmIntent => ({
  type: 'svm_transaction',
  userId: 'user',
  taskId: 'task',
  operation: 'send',
  chainId: chain.chainId,
  tokens: [mint],
  recipients: [friend],
  usdMicros: 1n,
  exit: false,
  account: own,
  feePayer: sponsor,
  spends: [
    { token: mint, amountUnits: 10n, to: friend },
    { token: systemProgram, amountUnits: 5n, to: friend },
  ],
  message: Buffer.from(
    compileMessage({ feePayer: sponsor, instructions, tables: [], staticAddresses: [], blockhash: key(9) }),
  ).toString('base64'),
  lastValidBlockHeight: 1n,
  ...change,
})
const sign = (given: SvmIntent, custody: SigningSvmChain | undefined = chain) =>
  assertSvmIntent({ intent: given, own, chain: custody, decoder: svmDecoder })
const ruleOf = (given: SvmIntent, custody?: SigningSvmChain) => {
  try {
    sign(given, custody ?? chain)
  } catch (fault) {
    return (fault as { extras?: { rule?: string } }).extras?.rule
  }
  return 'signed'
}
const tokenInstruction = (tag: number, accounts: string[], data = ''): SvmInstruction => ({
  programId: tokenProgram,
  accounts: accounts.map((address) => ({ address, isSigner: address === own, isWritable: address !== own })),
  data: `${Buffer.of(tag).toString('hex')}${data}`,
})
const ownTokens = deriveTokenAccount(own, mint, tokenProgram)
const pay = [transferTokens(usdc, own, friend, 10n), transferLamports(own, friend, 5n)]

test('the transfers of an intent, with their fees, rent and memo, are signed', () => {
  const given = intent([
    computeLimit(200_000),
    computePrice(5_000n),
    createTokenAccount(usdc, friend, sponsor),
    ...pay,
    closeTokenAccount({ account: ownTokens, tokenProgram }, own, sponsor),
    memo('hello'),
  ])
  assert.deepEqual([...sign(given)], [...Buffer.from(given.message, 'base64')])
})

test('everything that gives the wallet away is refused', () => {
  const authority = `00${Buffer.from(new Uint8Array(33).fill(4)).toString('hex')}`
  const refused: [SvmInstruction, string][] = [
    [tokenInstruction(6, [ownTokens, own], authority), 'SetAuthority'],
    [tokenInstruction(4, [ownTokens, stranger, own], '0a00000000000000'), 'Approve'],
    [tokenInstruction(13, [ownTokens, mint, stranger, own], '0a0000000000000006'), 'ApproveChecked'],
    [
      tokenInstruction(
        3,
        [ownTokens, deriveTokenAccount(friend, mint, tokenProgram), own],
        '0100000000000000',
      ),
      'Transfer',
    ],
    [tokenInstruction(8, [ownTokens, mint, own], '0100000000000000'), 'Burn'],
    [tokenInstruction(17, [ownTokens]), 'SyncNative'],
    [{ ...transferLamports(own, friend, 5n), data: `01000000${'00'.repeat(32)}` }, 'Assign of the wallet'],
    [{ ...transferLamports(own, friend, 5n), data: '04000000' }, 'AdvanceNonceAccount'],
    [
      { programId: foreign, accounts: [{ address: own, isSigner: true, isWritable: true }], data: '' },
      'a program',
    ],
  ]
  for (const [instruction, name] of refused)
    assert.equal(ruleOf(intent([...pay, instruction])), 'signer_program', name)
  assert.equal(ruleOf(intent([...pay, tokenInstruction(9, [ownTokens, stranger, own])])), 'signer_receiver')
  assert.equal(ruleOf(intent([...pay, tokenInstruction(9, [ownTokens, own, own])])), 'signer_receiver')
})

test('more, elsewhere, or another token than the intent says is refused', () => {
  const cases: [SvmInstruction[], string][] = [
    [[transferTokens(usdc, own, friend, 11n)], 'signer_spend'],
    [[transferTokens(usdc, own, friend, 6n), transferTokens(usdc, own, friend, 5n)], 'signer_spend'],
    [[transferLamports(own, friend, 6n)], 'signer_spend'],
    [[transferTokens(usdc, own, stranger, 10n)], 'signer_recipient'],
    [[transferLamports(own, stranger, 5n)], 'signer_recipient'],
    [[transferTokens({ ...usdc, mint: other }, own, friend, 1n)], 'signer_spend'],
    [[createTokenAccount(usdc, stranger, sponsor), ...pay], 'signer_owner'],
    [[createTokenAccount(usdc, friend, own), ...pay], 'signer_rent'],
    [[computePrice(1_000_000n), ...pay], 'signer_priority'],
    [[computeLimit(1_500_000), ...pay], 'signer_compute'],
  ]
  for (const [instructions, rule] of cases) assert.equal(ruleOf(intent(instructions)), rule)
  const sent = { operation: 'wallets_transfer' }
  assert.equal(ruleOf(intent([createTokenAccount(usdc, friend, sponsor), ...pay], sent)), 'signer_owner')
  const generous = { spends: [{ token: mint, amountUnits: 1_000n, to: friend }] }
  assert.equal(ruleOf(intent([transferTokens(usdc, own, friend, 101n)], generous)), 'signer_cap')
  const unlisted = { spends: [{ token: other, amountUnits: 10n, to: friend }] }
  assert.equal(
    ruleOf(intent([transferTokens({ ...usdc, mint: other }, own, friend, 1n)], unlisted)),
    'signer_token',
  )
})

test('the message is paid by the sponsor, signed by these two, and of this chain and wallet', () => {
  assert.equal(ruleOf(intent(pay, { account: stranger })), 'signer_account')
  assert.equal(ruleOf(intent(pay, { feePayer: stranger })), 'signer_fee_payer')
  assert.equal(ruleOf(intent(pay, { chainId: '1' })), 'signer_chain')
  assert.equal(ruleOf(intent(pay, { message: 'AAAA' })), 'signer_message')
  const third = { ...transferLamports(stranger, friend, 5n) }
  assert.equal(ruleOf(intent([...pay, third])), 'signer_signers')
})

test('an instruction of a configured program is signed, and never with the fee payer', () => {
  const custody = { ...chain, programs: [foreign] }
  const call = (address: string): SvmInstruction => ({
    programId: foreign,
    accounts: [{ address, isSigner: false, isWritable: true }],
    data: '00',
  })
  assert.equal(ruleOf(intent([...pay, call(other)]), custody), 'signed')
  assert.equal(ruleOf(intent([...pay, call(sponsor)]), custody), 'signer_fee_payer')
})

test('a payment for credits is one transfer of SOL under the cap, with a memo that names its task', () => {
  const custody = { ...chain, till: { address: friend, maxUnits: 4n } }
  const paying = (instructions: SvmInstruction[], amountUnits = 4n, change: Partial<SvmIntent> = {}) =>
    ruleOf(
      intent(instructions, { spends: [{ token: systemProgram, amountUnits, to: friend }], ...change }),
      custody,
    )
  const pays = (lamports: bigint) => transferLamports(own, friend, lamports)
  assert.equal(paying([memo('task'), pays(4n)]), 'signed')
  assert.equal(paying([memo('other'), pays(4n)]), 'signer_payment')
  assert.equal(paying([pays(4n)]), 'signer_payment')
  assert.equal(paying([memo('task'), memo('other'), pays(4n)]), 'signer_payment')
  assert.equal(paying([memo('task'), pays(2n), pays(2n)]), 'signer_payment')
  assert.equal(paying([memo('task'), pays(3n)]), 'signer_payment')
  assert.equal(paying([memo('task'), pays(5n)], 5n), 'signer_cap')
  const tokens = { spends: [{ token: mint, amountUnits: 4n, to: friend }] }
  assert.equal(paying([memo('task'), transferTokens(usdc, own, friend, 4n)], 4n, tokens), 'signer_payment')
})

test('the sponsor pays fee and rent, and nothing that an instruction takes', () => {
  const violationOf = (instructions: SvmInstruction[]) =>
    feePayerViolation(
      decodeMessage(
        compileMessage({
          feePayer: sponsor,
          instructions,
          tables: [],
          staticAddresses: [],
          blockhash: key(9),
        }),
      ),
      sponsor,
    )
  assert.equal(violationOf([createTokenAccount(usdc, friend, sponsor), ...pay]), undefined)
  assert.equal(violationOf([transferLamports(own, sponsor, 5n)]), undefined)
  const closed = { account: ownTokens, tokenProgram }
  assert.equal(violationOf([closeTokenAccount(closed, own, sponsor)]), undefined)
  const drains: SvmInstruction[] = [
    transferLamports(sponsor, own, 1n),
    transferTokens(usdc, sponsor, own, 1n),
    createTokenAccount(usdc, sponsor, sponsor),
    closeTokenAccount(closed, sponsor, sponsor),
    { programId: foreign, accounts: [{ address: sponsor, isSigner: true, isWritable: true }], data: '' },
  ]
  for (const drain of drains) assert.equal(violationOf([drain]), 'an instruction names the fee payer')
  const five = [friend, own, stranger, other, foreign].map((owner) =>
    createTokenAccount(usdc, owner, sponsor),
  )
  assert.match(violationOf(five) ?? '', /more than 4/)
})
