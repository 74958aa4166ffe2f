export type Operator = { actor: string; reason: string | null }

/** Operator and reason as one text, for tables with one column for both. */
export const operatorText = ({ actor, reason }: Operator): string => `${actor}: ${reason}`

/** No id of a user has a space. */
export const isOperatorText = (by: string | null): boolean => by?.includes(': ') ?? false
