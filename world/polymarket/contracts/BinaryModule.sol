// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {PositionModule} from "./shared/PositionModule.sol";

/// Conditions of their own.
contract BinaryModule is PositionModule {
    function prepareCondition(bytes calldata data) external onlyOracle returns (bytes31 conditionId) {
        conditionId = bytes31(_baseOf(1, data, 0));
        _prepare(conditionId);
    }

    function _checkReport(bytes31, uint256, uint256) internal override {}
}
