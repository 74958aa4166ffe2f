import type { Selection } from './tool-selection.ts'
import type { Toolbox } from './tools.ts'

/** A person picks these prompts; each is offered if the address of the client serves its tools. */

type Argument = { name: string; description: string; required: boolean }
type PromptSpec = {
  name: string
  title: string
  description: string
  tools: readonly string[]
  arguments: readonly Argument[]
  text: (given: Record<string, string>) => string
}

const needed = (name: string, description: string): Argument => ({ name, description, required: true })
const optional = (name: string, description: string): Argument => ({ name, description, required: false })

const moneyRule =
  'Show me the figures and ask me before you move money. Choose one idempotency_key for the intent, and repeat the call ' +
  'with the same key after a timeout. If an answer is unclear, read the task with tasks_get before anything else.'

const specs: readonly PromptSpec[] = [
  {
    name: 'portfolio_review',
    title: 'Review my portfolio',
    description: 'Holdings, positions and open orders, with their risks',
    tools: ['wallets_holdings'],
    arguments: [],
    text: () =>
      'Review my portfolio. Read wallets_holdings, and portfolio_show for the sums, perp_orders, spot_venue_orders and ' +
      'earn_positions where they are available. Name my largest exposures, orders that are open, positions without a stop, and values that are stale. ' +
      'Move nothing.',
  },
  {
    name: 'safe_swap',
    title: 'Swap a token after a security check',
    description: 'Checks both tokens, asks for a quote, and swaps once confirmed',
    tools: ['security_check', 'swap_execute'],
    arguments: [
      needed('token_in', 'Token that you give: symbol or address'),
      needed('token_out', 'Token that you get: symbol or address'),
      needed('amount', 'Amount of the token that you give'),
      optional('chain', 'Chain of the token that you give'),
    ],
    text: ({ token_in, token_out, amount, chain }) =>
      `Swap ${amount} ${token_in} to ${token_out}${chain ? ` on ${chain}` : ''}. First run security_check on the tokens, ` +
      `then swap_execute with dryrun=true for a quote. ${moneyRule}`,
  },
  {
    name: 'perp_trade',
    title: 'Open a perpetual position with a stop',
    description: 'Checks the market and the margin, and opens with take-profit and stop-loss',
    tools: ['perp_markets', 'perp_open'],
    arguments: [
      needed('asset', 'Market, such as ETH'),
      needed('side', 'long or short'),
      needed('size_usd', 'Size in USD'),
    ],
    text: ({ asset, side, size_usd }) =>
      `Open a ${side} position of ${size_usd} USD in ${asset}. Read perp_setup_status, perp_markets for ${asset} and ` +
      `perp_orders. Propose a stop-loss and a take-profit, then call perp_open with wait=true. ${moneyRule}`,
  },
]

export type PromptView = Pick<PromptSpec, 'name' | 'title' | 'description'> & { arguments: Argument[] }
export type PromptResult = {
  description: string
  messages: { role: 'user'; content: { type: 'text'; text: string } }[]
}
export type Prompts = {
  list(selection: Selection): readonly PromptView[]
  /** Returns the prompt, a text that says which argument is missing, or undefined if no prompt has this name. */
  get(name: string, given: Record<string, string>, selection: Selection): PromptResult | string | undefined
}

const argumentCharsMax = 200

export function createPrompts({ find }: Pick<Toolbox, 'find'>): Prompts {
  const offered = (selection: Selection) =>
    specs.filter(({ tools }) => tools.every((tool) => find(tool, selection)))
  return {
    list: (selection) =>
      offered(selection).map(({ name, title, description, arguments: all }) => ({
        name,
        title,
        description,
        arguments: [...all],
      })),
    get(name, given, selection) {
      const spec = offered(selection).find((each) => each.name === name)
      if (!spec) return undefined
      const missing = spec.arguments.find((each) => each.required && !given[each.name])
      if (missing) return `The argument ${missing.name} is missing`
      const long = spec.arguments.find((each) => (given[each.name]?.length ?? 0) > argumentCharsMax)
      if (long) return `The argument ${long.name} is longer than ${argumentCharsMax} characters`
      const text = spec.text(given)
      return { description: spec.description, messages: [{ role: 'user', content: { type: 'text', text } }] }
    },
  }
}
