import { summed } from '#kernel/money/figure-format.ts'
import type { Portico } from '#sdk/client.ts'
import { PorticoError } from '#sdk/errors.ts'
import { clientOf } from './call-operation.ts'
import { usdText } from './cell-text.ts'
import { baseUrlOf } from './credentials.ts'
import type { Options } from './operation-input.ts'
import {
  attempt,
  failures,
  hasFailed,
  isMoney,
  readVenues,
  screenWidth,
  show,
  venueWorth,
} from './people-screen.ts'
import { type Fact, factLines } from './screen.ts'
import type { Terminal } from './terminal.ts'

/** `portico status`: which gateway, who, how much, within which limits, and what runs. */
export async function status(terminal: Terminal, options: Options): Promise<number> {
  const call = { signal: terminal.signal }
  const client = clientOf(terminal, options)
  const baseUrl = baseUrlOf(terminal, typeof options.baseUrl === 'string' ? options.baseUrl : undefined)
  const discovery_health = await client.discovery.health({}, call)
  const user_show = await client.user.show({}, call).catch((error: unknown) => {
    if (error instanceof PorticoError && error.status === 401) return undefined
    throw error
  })
  const gateway: Fact = [
    'gateway',
    `${baseUrl}, ${discovery_health.environment}, version ${discovery_health.version}, ${discovery_health.status}`,
  ]
  const nobody: Fact[] = [
    gateway,
    ['you', 'nobody is signed in: portico init, or portico login for a person'],
  ]
  if (!user_show)
    return show({ terminal, options, answers: { discovery_health } }, () =>
      factLines(nobody, screenWidth(terminal)),
    )
  const [wallets_holdings, venues, policy_show, tasks_list, approvals_list] = await Promise.all([
    attempt(client.wallets.holdings({}, call)),
    readVenues(client, terminal.signal),
    attempt(client.policy.show({}, call)),
    attempt(client.tasks.list({ status: 'running' }, call)),
    attempt(client.approvals.list({}, call)),
  ])
  const answers = {
    discovery_health,
    user_show,
    wallets_holdings,
    ...venues,
    policy_show,
    tasks_list,
    approvals_list,
  }
  return show({ terminal, options, answers }, () => {
    const { perps, spot } = venueWorth(venues)
    const wallets = hasFailed(wallets_holdings) ? undefined : wallets_holdings.total_value_usd
    const parts = [
      ['wallets', wallets],
      ['perpetuals', perps],
      ['spot venue', spot],
    ] as const
    const owned = parts.filter((part): part is readonly [(typeof part)[0], string] => isMoney(part[1]))
    const total = summed(owned.map(([, usd]) => usd)) ?? '0'
    const facts: Fact[] = [
      gateway,
      [
        'you',
        [user_show.name ?? user_show.email, user_show.agent_id].filter((part) => part !== null).join(', '),
      ],
      ['plan', `${user_show.plan ?? 'none'}, ${user_show.credits_available_decimal} credits`],
      [
        'money',
        `${usdText(total)}${owned.length > 1 ? ` (${owned.map(([name, usd]) => `${name} ${usdText(usd)}`).join(', ')})` : ''}`,
      ],
      ...(hasFailed(policy_show) ? [] : [['limits', limitsText(policy_show)] as const]),
      ...(hasFailed(tasks_list) ? [] : [['running', countText(tasks_list.total, 'task')] as const]),
      ...(hasFailed(approvals_list) || approvals_list.total === 0
        ? []
        : [['waiting', `${countText(approvals_list.total, 'approval')}: portico approvals list`] as const]),
    ]
    return [...factLines(facts, screenWidth(terminal)), ...failures(answers, screenWidth(terminal))]
  })
}

const countText = (count: number, noun: string): string =>
  `${count === 0 ? 'no' : count} ${noun}${count === 1 ? '' : 's'}`

function limitsText({
  per_transaction_usd,
  remaining_24h_usd,
  approval_above_usd,
  paused,
}: Awaited<ReturnType<Portico['policy']['show']>>): string {
  const limits = [
    per_transaction_usd === null ? undefined : `${usdText(per_transaction_usd)} for each transaction`,
    remaining_24h_usd === null ? undefined : `${usdText(remaining_24h_usd)} left today`,
    approval_above_usd === null ? undefined : `a person approves above ${usdText(approval_above_usd)}`,
    paused === null ? undefined : `paused: ${paused.scope}`,
  ].filter((text) => text !== undefined)
  return limits.length === 0 ? 'none' : limits.join(', ')
}
