import { group, implement, type Operation, task, taskOf } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { ChainIdIn, DecIn } from '#kernel/contract/wire-types.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import type { Policy } from '#kernel/task/signer.ts'

/** An operation that a message can order, that counts against the limits, and that no chat starts by itself. */
const contract = group('perp', 'Operations of a test.', {
  fund: task('POST /test/fund', {
    summary: 'Move dollars',
    access: 'trade',
    waitSeconds: 5,
    body: T.Object(
      { amount_usd: DecIn({ places: 6, minimum: 0 }), source_chain_id: ChainIdIn },
      { $id: 'TestFundRequest', additionalProperties: false },
    ),
    output: TaskResponse,
  }),
})

export const fundOperation = ({ policy }: { policy: Pick<Policy, 'check'> }): Operation[] =>
  implement(contract, {
    fund: taskOf({
      admit: createAdmission({
        policy,
        check: async ({ source_chain_id: chainId }: { source_chain_id: string }, { userId }) => ({
          action: {
            userId,
            operation: 'perp_fund',
            chainId,
            tokens: [],
            recipients: [],
            usdMicros: 5_000_000n,
            exit: false,
          },
        }),
        start: () => ({ data: {}, first: 'fund' as const }),
      }),
      steps: { fund: async () => ({ end: 'completed', outcome: 'executed', result: {} }) },
    }),
  })
