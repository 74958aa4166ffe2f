/** An operation of the tests: a user sends tokens or SOL to a listed wallet, and the sponsor pays. */
import type { Overrides } from '#compose/compose.ts'
import type { SvmPlan, SvmTaskData } from '#engines/svm-transaction/transaction-plan.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { group, type InputOf, implement, task, taskOf } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { toAssetId } from '#kernel/money/chains.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { oneEffect } from '#kernel/task/effect-steps.ts'
import type { SvmInstruction } from '#kernel/task/signer.ts'
import type { TaskView } from '#kernel/task/task.ts'
import {
  closeTokenAccount,
  createTokenAccount,
  transferLamports,
  transferTokens,
} from '#upstreams/solana/instruction-builder.ts'
import { deriveTokenAccount } from '#upstreams/solana/program-address.ts'
import { token2022Program, tokenProgram } from '#upstreams/solana/program-ids.ts'

export const solanaId = '7565164'
/** The local solver's wallet, which is a configured recipient. */
export const recipient = 'GsvUt13LU6Jn84Pm57EhSzjnScCo3sVUdMM2Mac1hXZs'

const contract = group('svm', 'Operations of a test.', {
  send: task('POST /v1/test/send', {
    summary: 'Send',
    access: 'trade',
    waitSeconds: 60,
    body: T.Object({
      symbol: T.String(),
      units: T.String(),
      to: T.Optional(T.String()),
      /** Opens a token account of the user for this token, too. */
      opens: T.Optional(T.String()),
      /** Closes the user's account for this token, for the rent to be paid to the user. */
      closes: T.Optional(T.String()),
      full_exit: T.Optional(T.Boolean()),
    }),
    output: TaskResponse,
  }),
})
type Input = InputOf<(typeof contract.entries)['send']>
type Data = SvmTaskData & { account: string }
export type SendOptions = {
  /** Changes what is signed. */
  change?: (plan: SvmPlan) => SvmPlan
  signsAgain?: boolean
  /** False: the step `sign` signs. */
  signsOnAccept?: boolean
}

export const sendOperation =
  ({
    change = (plan) => plan,
    signsAgain = true,
    signsOnAccept = true,
  }: SendOptions = {}): NonNullable<Overrides['addOperations']> =>
  ({ core, chains, custody }) => {
    const { svm, svmAddressOf, policy } = custody
    const { row } = chains.svmPorts.get(solanaId)!.chain
    const tokenOf = (symbol: string) => [row.native, ...row.tokens].find((each) => each.symbol === symbol)!
    const mintOf = (symbol: string) => {
      const { address, decimals } = tokenOf(symbol)
      return { mint: address, decimals, tokenProgram: symbol === 'PYUSD' ? token2022Program : tokenProgram }
    }
    const closeOf = ({ mint, tokenProgram: program }: ReturnType<typeof mintOf>, account: string) =>
      closeTokenAccount(
        { account: deriveTokenAccount(account, mint, program), tokenProgram: program },
        account,
        account,
      )
    const instructionsOf = (
      { symbol, units, to = recipient, opens, closes }: Input,
      account: string,
    ): SvmInstruction[] => [
      ...(opens ? [createTokenAccount(mintOf(opens), account, account)] : []),
      ...(closes ? [closeOf(mintOf(closes), account)] : []),
      ...(symbol === 'SOL'
        ? [transferLamports(account, to, BigInt(units))]
        : [
            createTokenAccount(mintOf(symbol), to, account),
            transferTokens(mintOf(symbol), account, to, BigInt(units)),
          ]),
    ]
    const actionOf = ({ symbol, to = recipient }: Input) => ({
      operation: 'svm_send',
      chainId: solanaId,
      tokens: [tokenOf(symbol).address],
      recipients: [to],
      usdMicros: 1_000_000n,
      exit: false,
    })
    const planOf = (input: Input, account: string): SvmPlan =>
      change({
        ...actionOf(input),
        account,
        instructions: instructionsOf(input, account),
        lookupTables: [],
        spends: [
          {
            token: tokenOf(input.symbol).address,
            amountUnits: BigInt(input.units),
            to: input.to ?? recipient,
          },
        ],
        fullExit: input.full_exit ?? false,
      })
    const admit = createAdmission({
      policy: policy.policy,
      async check(input: Input, { userId }) {
        return { action: { userId, ...actionOf(input) }, input }
      },
      async fund({ action: { userId }, input }) {
        const account = await svmAddressOf(userId)
        await svm.ready(solanaId, { fullExit: input.full_exit ?? false })
        const token = tokenOf(input.symbol)
        const wallet = { owner: userId, asset: toAssetId(row, token.address), subAccount: 'wallet' }
        const read = async () => {
          const { version } = await core.taskEngine.ledger.balance(core.db, wallet)
          const { lamports, tokens } = await chains.svmPorts.get(solanaId)!.chain.holdings(account)
          const held = tokens.find(({ mint }) => mint === token.address)?.amountUnits ?? 0n
          return { totalUnits: input.symbol === 'SOL' ? lamports : held, version }
        }
        const seen = { ...(await read()), reread: read }
        const amountUnits = BigInt(input.units)
        if (seen.totalUnits < amountUnits)
          throw insufficientBalance(token, { requiredUnits: amountUnits, availableUnits: seen.totalUnits })
        const trial = await svm.trial({ userId }, planOf(input, account))
        if (!trial.ok) throw new Fault('conflict', `The transaction would fail: ${trial.reason}`)
        const data: Data = { account }
        const spend = { account: wallet, amountUnits, token, seen, gas: trial.charge }
        return { data, spend, ...(signsOnAccept && { signOnAccept: trial.signOnAccept }) }
      },
      start: (_request, funds) => ({ first: 'sign' as const, ...funds }),
    })
    const steps = oneEffect({
      driver: svm.driver({
        signsAgain,
        prove(view: TaskView<Data>, landing) {
          const input = view.input as Input
          const { address } = tokenOf(input.symbol)
          const delta = landing.deltas.find(({ token }) => token === address)?.amountUnits ?? 0n
          return -delta === BigInt(input.units) || input.to ? { landing } : undefined
        },
      }),
      plan: (view: TaskView<Data>) => planOf(view.input as Input, view.data.account),
      settle: (view, { landing }) => ({
        end: 'completed',
        outcome: 'executed',
        result: { tx_hash: landing.signature, sponsor_lamports: String(landing.sponsorLamports) },
        spent: BigInt((view.input as Input).units),
      }),
    })
    return implement(contract, { send: taskOf({ admit, steps }) })
  }
