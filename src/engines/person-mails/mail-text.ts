import type { Caller } from '#kernel/contract/caller.ts'
import type { EmailMessage } from '#kernel/wire/email.ts'

/** The texts of messages to people about their accounts. None contains a secret or an address that acts when opened. */

export const mailKinds = [
  'limits_raised',
  'trading_resumed',
  'recipient_added',
  'agent_linked',
  'link_contested',
  'app_connected',
  'app_credits_changed',
  'password_changed',
  'passkey_added',
  'passkey_removed',
] as const
export type MailKind = (typeof mailKinds)[number]

/** One change in a message, as sentences in the past tense; `effectiveAt` is null if it took effect at once. */
export type MailItem = { text: string; at: Date; effectiveAt: Date | null }

type KindText = {
  subject: string
  /** How the person can undo the change on the account page. */
  undo: string
}

const texts: Record<MailKind, KindText> = {
  limits_raised: {
    subject: 'Limits of your Portico account were raised',
    undo: 'sign in and cancel the change before it takes effect',
  },
  trading_resumed: {
    subject: 'Trading with your Portico account was allowed again',
    undo: 'sign in and stop trading',
  },
  recipient_added: {
    subject: 'A recipient was added to your Portico account',
    undo: 'sign in and remove the recipient before it takes effect',
  },
  agent_linked: {
    subject: 'An agent was linked to your Portico account',
    undo: 'sign in and unlink the agent',
  },
  link_contested: {
    subject: 'The link of an agent to your Portico account is contested',
    undo: 'sign in and unlink the agent, where you did not expect it',
  },
  app_connected: {
    subject: 'An app was connected to your Portico account',
    undo: 'sign in, disconnect the app, and sign out every browser and app where somebody else connected it',
  },
  app_credits_changed: {
    subject: 'What an app may spend of your Portico credits was changed',
    undo: 'sign in and disconnect the app',
  },
  password_changed: {
    subject: 'The password of your Portico account was changed',
    undo: 'choose “Forgot your password?” and set a new one, which ends every session and connected app',
  },
  passkey_added: {
    subject: 'A passkey was added to your Portico account',
    undo: 'sign in, remove the passkey, and sign out every browser and app',
  },
  passkey_removed: {
    subject: 'A passkey was removed from your Portico account',
    undo: 'sign in, add a passkey again, and sign out every browser and app',
  },
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const twoDigits = (n: number): string => String(n).padStart(2, '0')
/** Formats a time in UTC, because the place of the person is unknown. */
export const timeText = (at: Date): string =>
  `${at.getUTCDate()} ${months[at.getUTCMonth()]} ${at.getUTCFullYear()}, ${twoDigits(at.getUTCHours())}:${twoDigits(at.getUTCMinutes())} UTC`

const nameMax = 60
/** Returns a name as letters, digits and few marks: mail programs turn what looks like an address into a link. */
export const mailName = (name: string): string =>
  name
    .replace(/[^\p{L}\p{N} '()&+,_-]/gu, ' ')
    .replace(/ +/g, ' ')
    .trim()
    .slice(0, nameMax)
    .toWellFormed()
    .trim()

/** The sentence that is added to a change that an operator confirmed in place of the person. */
export const confirmedText = ({ confirmedBy }: Pick<Caller, 'confirmedBy'>): string =>
  confirmedBy === undefined ? '' : ' An operator confirmed it.'

const itemText = ({ text, at, effectiveAt }: MailItem): string =>
  `${timeText(at)}\n${text}\n${
    effectiveAt ? `It takes effect on ${timeText(effectiveAt)}.` : 'It took effect at once.'
  }`

type Message = {
  kind: MailKind
  items: readonly MailItem[]
  more: number
  gateway: string
  accountPage: string
}
export function mailOf({
  kind,
  items,
  more,
  gateway,
  accountPage,
}: Message): Omit<EmailMessage, 'to' | 'key'> {
  const { subject, undo } = texts[kind]
  const text = [
    ...items.map(itemText),
    ...(more === 0 ? [] : [`And ${more} more of this sort.`]),
    `If this was not you: open ${accountPage}, ${undo}.`,
    `Sent by the Portico gateway at ${gateway}. It never asks for your password or for a code by email.`,
  ].join('\n\n')
  const count = items.length + more
  return { subject: count > 1 ? `${subject} (${count} times)` : subject, text }
}
