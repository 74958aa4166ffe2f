import { scopes } from '#kernel/contract/caller.ts'
import { setColumns } from '#kernel/contract/columns.ts'
import { group, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { Address, Dec, Nullable, OneOf, TextOrNull, Time, TimeOrNull } from '#kernel/contract/wire-types.ts'

export const contract = group('user', 'The calling user.', {
  show: read('GET /v1/user', {
    summary: 'The calling user: wallets, credits, scopes and limits',
    description:
      'Use it after signing in, to see your wallets, credits, scopes and limits in USD. Next: `wallets_holdings` for balances, `policy_show` for all limits.',
    access: 'read',
    output: T.Object(
      {
        user_id: T.String(),
        agent_id: T.String(),
        auth_scheme: OneOf(['keypair', 'oauth']),
        email: TextOrNull,
        name: TextOrNull,
        wallets: T.Array(
          T.Object({
            wallet_id: T.String(),
            address: Address,
            chain_type: OneOf(['evm', 'solana']),
          }),
        ),
        credits_available: Nullable(T.Number()),
        credits_available_decimal: Nullable(Dec),
        plan: T.String({ description: 'Name of the plan; free without one' }),
        plan_status: OneOf(['none', 'active', 'past_due', 'suspended', 'canceled'], {
          description: 'State of the plan, as `subscriptions_show` explains it',
        }),
        plan_until: T.Unsafe<string | null>({
          ...TimeOrNull,
          description: 'When the plan renews or ends; null without one',
        }),
        scopes: T.Array(OneOf(scopes)),
        policy_summary: T.Object({
          per_transaction_usd: Dec,
          per_day_usd: Dec,
          remaining_24h_usd: Dec,
          paused: T.Boolean(),
        }),
        disclaimer_acknowledged_at: TimeOrNull,
        created_at: Time,
      },
      { $id: 'UserResponse' },
    ),
  }),
})
const { output } = contract.entries.show
setColumns(output, [
  'name',
  'email',
  'agent_id',
  'credits_available_decimal',
  'plan',
  'plan_status',
  'plan_until',
  'scopes',
  'policy_summary',
  'wallets',
])
setColumns(output.properties.wallets.items, ['chain_type', 'address'])
