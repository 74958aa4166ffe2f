/** Stripe's test cards, and what happens to a payment with each. */

export type CardBehaviour = {
  /** The reason why the bank declines; absent if it pays. */
  declines?: string
  /** The bank asks its customer first. */
  asks?: true
  /** The payment succeeds, and its payer disputes it. */
  disputes?: true
  /** Payments without the payer, such as renewals, are declined. */
  declinesLater?: true
}

const cards: Readonly<Record<string, CardBehaviour & { label: string }>> = {
  '4242424242424242': { label: 'paid' },
  '4000000000000002': { label: 'declined', declines: 'generic_decline' },
  '4000002500003155': { label: '3D Secure', asks: true },
  '4000000000009995': { label: 'no funds', declines: 'insufficient_funds' },
  '4000000000000259': { label: 'disputed', disputes: true },
  '4000000000000341': { label: 'renewal fails', declinesLater: true },
}

export const testCards = Object.entries(cards).map(([number, { label }]) => ({ number, label }))

export const behaviourOf = (number: string): CardBehaviour | undefined => cards[number]

export const declineMessages: Readonly<Record<string, string>> = {
  generic_decline: 'Your card was declined.',
  insufficient_funds: 'Your card has insufficient funds.',
  authentication_failed: 'Your bank could not confirm that it is you. Use another card, or try again.',
  invalid_number: 'This is no test card of the local world.',
}
