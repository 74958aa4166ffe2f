export const packs = [
  { packId: '5', priceUsd: '5', credits: 300 },
  { packId: '10', priceUsd: '10', credits: 650 },
  { packId: '20', priceUsd: '20', credits: 1400 },
] as const
