export type Operator = { actor: string; reason: string | null }

/** Joins operator and reason, for tables with one column for both. */
export const operatorText = ({ actor, reason }: Operator): string => `${actor}: ${reason}`

export const isOperatorText = (by: string | null): boolean => by?.includes(': ') ?? false
