/** How an account at the venue keeps its dollars, by the venue's name of its mode. */

/** Perpetuals and spot apart. The discontinued \`dexAbstraction\` too: only exchanges of other deployers draw on its perpetuals side. */
const separateModes: readonly string[] = ['default', 'disabled', 'dexAbstraction']

/** Unified and portfolio margin accounts keep one balance for perpetuals and spot, on the spot side. */
export const isUnified = (mode: string): boolean => !separateModes.includes(mode)
