// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Addresses} from "./Addresses.sol";
import {ConditionalTokens} from "../ConditionalTokens.sol";

/// The two outcomes of a binary condition: set 1 is YES, set 2 is NO.
library BinarySets {
    function both() internal pure returns (uint256[] memory sets) {
        sets = new uint256[](2);
        sets[0] = 1;
        sets[1] = 2;
    }

    function positions(address collateral, bytes32 conditionId, uint256 amount)
        internal
        view
        returns (uint256[] memory ids, uint256[] memory amounts)
    {
        ConditionalTokens tokens = ConditionalTokens(Addresses.CONDITIONAL_TOKENS);
        ids = new uint256[](2);
        amounts = new uint256[](2);
        for (uint256 i = 0; i < 2; i++) {
            ids[i] = tokens.getPositionId(collateral, tokens.getCollectionId(0, conditionId, i + 1));
            amounts[i] = amount;
        }
    }
}
