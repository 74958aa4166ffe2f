/** The accounts of the ledger that hold credits of a user. */

export const creditsAsset = 'credits'

export const planAccountPrefix = `${creditsAsset}:plan:`
/** Each paid invoice of a plan has an account of its own, so that a refund takes back its credits alone. */
export const planAccountOf = (invoiceId: string): string => `${planAccountPrefix}${invoiceId}`
