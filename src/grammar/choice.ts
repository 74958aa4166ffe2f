import type { Slots } from './reader.ts'

/** One answer to a question: what it fills, and which intent goes on with it. */
export type Choice = { label: string; fill: Slots; intent?: string }
